"""What each kind of item in an example does when its image is cut, flipped, shifted or warped: one row for each kind.

Changes of color leave targets alone. Masks keep their values: the nearest pixel is taken. Pixels from
outside the image get `OUTSIDE`, and have no depth, 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_vit.data.augment import boxes, depths
from keras_vit.data.augment.masks import decode

OUTSIDE = 255


class Kind(NamedTuple):
    """The changes of one kind of item. `None` leaves it as it is: a label has no place in the image.

    `size` is the image's `(height, width)`, after a cut the model's.
    """

    # (item, cuts.Cut, size): one item, at the model's size afterwards; float32, or uint8 of segmentation masks
    cut: Callable | None = None
    flip: Callable | None = None  # (batch, chosen, size): mirrors the chosen ones, a bool vector
    shift: Callable | None = (
        None  # (batch, padding, start, size): pads, then cuts windows of the old size, from `start`
    )
    warp: Callable | None = None  # (batch, transforms, size): affine, from output to input pixels; see `geometry`


def moved(examples, change, *arguments):
    """Applies one change of place, such as `"flip"`, to every item of a batch.

    Args:
        examples: Dictionary of tensors, by the names of `KINDS`; `"images"` is one of them.
        change: A field of `Kind`.
        *arguments: Its arguments after the item.
    """

    size = tuple(examples["images"].shape[1:3])

    def move(name, value):
        function = getattr(KINDS[name], change)
        return value if function is None else function(value, *arguments, size)

    return {name: move(name, value) for name, value in examples.items()}


def change_some(images, chosen, change):
    """Changes only the chosen images: copying them takes less time than `tf.where` on every pixel."""
    index = tf.where(chosen)
    return tf.tensor_scatter_nd_update(images, index, change(tf.gather_nd(images, index)))


def cut_mask(item, cut, size):
    """Cuts one mask where its image was cut, by the nearest pixel: with the pixel centers of `tf.image.resize`.

    Args:
        item: A scalar string, an encoded PNG; or a uint8 tensor `(height, width, 1)`, as large as the image.
        cut: A `cuts.Cut`.
        size: `(height, width)` of the result.

    Returns:
        uint8 tensor, `(height, width, 1)`.
    """
    mask = decode(item)
    text = "A mask must have the size of its image."
    with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(mask)[:2], cut.shape, text)]):
        return _nearest(tf.identity(mask), cut, size)


def cut_depth(item, cut, size):
    """Cuts one map of depth like `cut_mask`: float32 `(height, width, 1)`, 0 in holes; see `depths.decode`."""
    return _nearest(depths.decode(item, cut.shape), cut, size)


def _nearest(mask, cut, size):
    """Returns the pixels of a map that a `Cut` sees."""
    for axis in (0, 1):
        place = tf.range(size[axis]) + (0 if cut.window is None else cut.window[axis])  # in the resized box
        mask = tf.gather(mask, cut.start[axis] + (2 * place + 1) * cut.extent[axis] // (2 * cut.grid[axis]), axis=axis)
    if cut.flip is not None:
        mask = tf.cond(cut.flip, lambda: tf.reverse(mask, [1]), lambda: mask)
    return tf.ensure_shape(mask, (*size, 1))


def _flip(images, chosen, size):
    return change_some(images, chosen, lambda some: tf.reverse(some, [2]))


def _shift(outside):
    def shift(images, padding, start, size):
        height, width = size
        sides = [[0, 0], [padding, padding], [padding, padding], [0, 0]]
        images = tf.pad(images, sides, constant_values=outside)
        images = tf.gather(images, start[:, :1] + tf.range(height), axis=1, batch_dims=1)
        return tf.gather(images, start[:, 1:] + tf.range(width), axis=2, batch_dims=1)

    return shift


def _warp(interpolation, outside):
    def warp(images, transforms, size):
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=images,
            transforms=transforms,
            output_shape=size,
            fill_value=outside,
            interpolation=interpolation,
            fill_mode="CONSTANT",
        )

    return warp


KINDS = {
    "images": Kind(None, _flip, _shift(0), _warp("BILINEAR", 0.0)),  # cut in `crops`
    "labels": Kind(),
    "multilabels": Kind(),
    "numbers": Kind(),
    "texts": Kind(),
    "bounding_boxes": Kind(boxes.cut, boxes.flip, boxes.shift, boxes.warp),
    "depths": Kind(cut_depth, _flip, _shift(0), _warp("NEAREST", 0.0)),
    "segmentation_masks": Kind(cut_mask, _flip, _shift(OUTSIDE), _warp("NEAREST", float(OUTSIDE))),
}
