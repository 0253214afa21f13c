"""Images and targets that the caller has as arrays."""

import numpy as np

from keras_vit.data import deep_source
from keras_vit.data.memory import Source
from keras_vit.data.readers import dataset_labels
from keras_vit.data.readers.table_cells import group_of
from keras_vit.data.readers.target_arrays import are_texts, named, texts_of
from keras_vit.data.targets import KINDS
from keras_vit.preparing.pixel_range import refuse_binary
from keras_vit.utils import checks


def from_arrays(arrays, targets, shape, class_names=(), value_range=checks.BYTES, deep=None):
    """Returns the source of the caller's own arrays.

    Args:
        arrays: `(images, *targets)`; or `images` alone if there are no targets. Images are `(images, height, width,
            channels)`, 0..255; labels `(images,)`, integers, also as floats or Booleans, names, or one-hot vectors;
            segmentation masks `(images, height, width)`, with or without a last axis of 1, integers from 0 to 255;
            instance masks of the same shapes, each a `keras_vit.instance_map`; depth too, at least 0, and 0 or NaN in
            holes; boxes `(images, most, 5)`, as in `boxes`, or a dictionary as in `box_arrays`; numbers `(images,)` or
            `(images, numbers)`; several labels `(images, classes)`, 0 or 1, NaN or -1 where unknown, or a list of names
            for each; texts a list of strings, or of several strings for each image.
        targets: Their names, of `targets.KINDS`.
        shape: `(height, width, channels)` that the model takes.
        class_names: Names of the classes of labels.
        value_range: The lowest and the highest pixel; `None` for any finite numbers.
        deep: The `Data` of images in a range that it states, of any type and bands; see `deep_source.of_arrays`.

    Raises:
        ValueError: If there are more or fewer arrays, or one has another shape, type or range.
    """
    if not targets and not isinstance(arrays, (tuple, list)):
        arrays = (arrays,)
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 1 + len(targets):
        names = ", ".join(["images", *(name.replace("_", " ") for name in targets)])
        form = {0: "images", 1: f"a pair ({names})"}.get(len(targets), f"({names})")
        kind = type(arrays).__name__ + (f" of {len(arrays)}" if isinstance(arrays, (tuple, list)) else "")
        raise ValueError(f"Arrays must be {form}. Received: {kind}")
    if deep is None:
        images = checks.pixels(arrays[0], shape, value_range=value_range)
        refuse_binary(images, value_range)
    else:
        images = deep_source.of_arrays(arrays[0], deep, shape)
    if deep is None and images.dtype.kind in "ui":
        images = images.astype("uint8" if 0 <= images.min() <= images.max() <= 255 else "float32", copy=False)
    found = {name: KINDS[name].array(values, images, class_names) for name, values in zip(targets, arrays[1:])}
    groups = [group_of(image.tobytes()) for image in images] if "texts" in found else None  # texts of one image
    bands = None if deep is None else images.shape[3]
    return Source(images, found, tuple(class_names), groups=groups and np.array(groups, "int64"), bands=bands)


def names_in(arrays, targets):
    """Returns the names of the classes of labels that are texts, or lists of texts, sorted; an empty tuple of others.

    Args:
        arrays, targets: As in `from_arrays`.
    """
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 1 + len(targets):
        return ()
    values = dict(zip(targets, arrays[1:]))
    if "labels" in values and are_texts(labels := np.asarray(values["labels"])):
        return dataset_labels.names_of(texts_of(labels))
    if "multilabels" in values and (rows := named(values["multilabels"])):
        return dataset_labels.names_of(rows[1])
    return ()
