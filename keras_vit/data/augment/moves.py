"""How images, masks and maps of objects or depth are cut, flipped, shifted and warped: columns of `data/targets.py`.

Masks keep their values: the nearest pixel is taken.
"""

import tensorflow as tf

from keras_vit.data.augment import depths
from keras_vit.data.augment.masks import decode
from keras_vit.utils.instance_maps import OFFSET


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
    return _nearest(_as_large(decode(item), cut), cut, size)


def cut_instances(item, cut, size):
    """Cuts one map of objects like `cut_mask`; int32 `(height, width, 1)`, as in `utils.instance_maps`."""
    return _nearest(_as_large(decode_instances(item), cut), cut, size)


def decode_instances(item):
    """Returns a map of objects, int32 `(height, width, 1)`, from the PNG of one, a scalar string; or pixels."""
    if item.dtype != tf.string:
        return item
    bands = tf.cast(tf.ensure_shape(tf.io.decode_png(item, channels=3), (None, None, 3)), "int32")
    return tf.reduce_sum(bands * [1, 2**8, 2**16], axis=-1, keepdims=True) - OFFSET


def cut_depth(item, cut, size):
    """Cuts one map of depth like `cut_mask`: float32 `(height, width, 1)`, 0 in holes; see `depths.decode`."""
    return _nearest(depths.decode(item, cut.shape), cut, size)


def _as_large(mask, cut):
    text = "A mask must have the size of its image."
    with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(mask)[:2], cut.shape, text)]):
        return tf.identity(mask)


def _nearest(mask, cut, size):
    """Returns the pixels of a map that a `Cut` sees."""
    for axis in (0, 1):
        place = tf.range(size[axis]) + (0 if cut.window is None else cut.window[axis])  # in the resized box
        mask = tf.gather(mask, cut.start[axis] + (2 * place + 1) * cut.extent[axis] // (2 * cut.grid[axis]), axis=axis)
    if cut.flip is not None:
        mask = tf.cond(cut.flip, lambda: tf.reverse(mask, [1]), lambda: mask)
    return tf.ensure_shape(mask, (*size, 1))


def flip(images, chosen, size):
    """Mirrors the chosen images or maps of a batch."""
    return change_some(images, chosen, lambda some: tf.reverse(some, [2]))


def shift_of(outside):
    """Returns the function that pads a batch by `outside`, then cuts windows of the old size."""

    def shift(images, padding, start, size):
        height, width = size
        sides = [[0, 0], [padding, padding], [padding, padding], [0, 0]]
        images = tf.pad(images, sides, constant_values=outside)
        images = tf.gather(images, start[:, :1] + tf.range(height), axis=1, batch_dims=1)
        return tf.gather(images, start[:, 1:] + tf.range(width), axis=2, batch_dims=1)

    return shift


def warp_of(interpolation, outside):
    """Returns the function that warps a batch by affine transforms; pixels from outside become `outside`."""

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
