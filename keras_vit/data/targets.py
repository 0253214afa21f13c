"""Kinds of targets: one row for each, with what every reader and every change of an image must know of it.

Changes of color leave targets alone. Pixels from outside the image get `OUTSIDE` in masks, are of no object, `NONE`,
and have no depth, 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_vit.data import renaming
from keras_vit.data.augment import boxes, moves
from keras_vit.data.augment.references import cut_reference
from keras_vit.data.readers import table_cells, target_arrays, target_values, texts
from keras_vit.data.readers.table_labels import several_labels
from keras_vit.utils.instance_maps import NONE

OUTSIDE = 255


class Kind(NamedTuple):
    """What is known of one kind of item. `None` means that there is no such reader, or that nothing changes.

    `size` is the image's `(height, width)`, after a cut the model's.
    """

    usual: tuple[str, ...] = ()  # names of its column where `Data.columns` does not say it; the first that is there
    cells: Callable | None = None  # (columns, Data.columns): reader of a table's cells; see `table_cells`
    values: Callable | None = None  # (values, images, class_names): the array from a dataset's values
    array: Callable | None = None  # (values, images, class_names): the caller's array, checked
    record: tf.DType | None = None  # its type in TFRecord files; `None` if it is not streamed
    renamed: Callable | None = None  # (values, places, count): its classes in another order; `None` without classes
    cut: Callable | None = (
        None  # (item, cuts.Cut, size): one item, at the model's size afterwards, of the type `pixels`
    )
    pixels: tf.DType = tf.float32
    flip: Callable | None = None  # (batch, chosen, size): mirrors the chosen ones, a bool vector
    # (batch, padding, start, size): pads, then cuts windows of the old size, from `start`
    shift: Callable | None = None
    warp: Callable | None = None  # (batch, transforms, size): affine, from output to input pixels; see `geometry`


def moved(examples, change, *arguments):
    """Applies one change of place, such as `"flip"`, to every item of a batch.

    Args:
        examples: Dictionary of tensors, by the names of `KINDS`; `"images"` is one of them.
        change: A field of `Kind`: `"flip"`, `"shift"` or `"warp"`.
        *arguments: Its arguments after the item.
    """

    size = tuple(examples["images"].shape[1:3])

    def move(name, value):
        function = getattr(KINDS[name], change)
        return value if function is None else function(value, *arguments, size)

    return {name: move(name, value) for name, value in examples.items()}


def usual(name):
    """Returns the names of the column that a target has where `Data.columns` does not say it."""
    return (KINDS[name].usual if name in KINDS else ()) or (name,)


KINDS = {
    "images": Kind(
        usual=("image", "images", "img"),
        record=tf.string,
        flip=moves.flip,  # cut in `crops`
        shift=moves.shift_of(0),
        warp=moves.warp_of("BILINEAR", 0.0),
    ),
    "labels": Kind(
        usual=("label", "labels", "class", "category"),
        cells=table_cells.Labels,
        values=target_values.labels,
        array=target_arrays.labels,
        record=tf.int64,
        renamed=renaming.labels,
    ),
    "multilabels": Kind(
        usual=("labels", "tags", "classes", "categories", "label"),
        cells=several_labels,
        values=target_values.multilabels,
        array=target_arrays.multilabels,
        renamed=renaming.multilabels,
    ),
    "numbers": Kind(
        usual=("numbers", "number"),
        cells=table_cells.Numbers,
        values=target_values.numbers,
        array=target_arrays.numbers,
    ),
    "texts": Kind(
        usual=("text", "texts", "caption", "captions"),
        cells=texts.TextColumns,
        values=target_values.texts,
        array=texts.of_array,
    ),
    "bounding_boxes": Kind(
        usual=("bounding_boxes", "boxes", "objects"),
        values=target_values.boxes,
        array=target_arrays.boxes,
        renamed=renaming.boxes,
        cut=boxes.cut,
        flip=boxes.flip,
        shift=boxes.shift,
        warp=boxes.warp,
    ),
    "depths": Kind(
        usual=("depth", "depths", "depth_map"),
        values=target_values.depths,
        array=target_arrays.depths,
        cut=moves.cut_depth,
        flip=moves.flip,
        shift=moves.shift_of(0),
        warp=moves.warp_of("NEAREST", 0.0),
    ),
    "segmentation_masks": Kind(
        usual=("segmentation_mask", "segmentation_masks", "mask", "masks", "annotation"),
        cells=table_cells.FileNames,
        values=target_values.masks,
        array=target_arrays.masks,
        record=tf.string,
        cut=moves.cut_mask,
        pixels=tf.uint8,
        flip=moves.flip,
        shift=moves.shift_of(OUTSIDE),
        warp=moves.warp_of("NEAREST", float(OUTSIDE)),
    ),
    "instance_masks": Kind(
        usual=("instance_mask", "instance_masks", "instances"),
        values=target_values.instances,
        array=target_arrays.instances,
        renamed=renaming.instances,
        cut=moves.cut_instances,
        pixels=tf.int32,
        flip=moves.flip,
        shift=moves.shift_of(NONE),
        warp=moves.warp_of("NEAREST", float(NONE)),
    ),
    "references": Kind(
        usual=("reference", "references"),
        cells=table_cells.FileNames,
        cut=cut_reference,
        flip=moves.flip,
        shift=moves.shift_of(0),
        warp=moves.warp_of("BILINEAR", 0.0),
    ),
}
