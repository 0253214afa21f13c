"""The orientations that cameras write into image files (EXIF): found, and applied to pixels and boxes in tf.data."""

import numpy as np
import tensorflow as tf

from keras_vit.utils import images
from keras_vit.utils.images import TURNS


def orientations(items):
    """Returns the orientation of each encoded image, a vector of strings: int32 `(n,)`, as `images.orientation`."""

    def find(items):
        return np.array([images.orientation(item) for item in items], "int32")

    numbers = tf.numpy_function(find, [items], "int32", stateful=False)
    return tf.ensure_shape(numbers, items.shape)


def turn(image, number):
    """Turns an image, `(height, width, channels)`, upright, by its orientation, a scalar."""

    def turned():
        swapped, down, right = tf.unstack(tf.gather(tf.constant(TURNS), number - 1))
        return tf.transpose(image, tf.stack([swapped, 1 - swapped, 2]))[::down, ::right]

    return tf.cond(number > 1, turned, lambda: tf.identity(image))


def turn_shape(shape, number):
    """Returns the `(height, width)` of an image, int32, after `turn`; or, given that, before it."""
    return tf.where(number > 4, shape[::-1], shape)


def box_before(shape, start, extent, number):
    """Returns where a box of a turned image is in the image as it is stored.

    Args:
        shape: `(height, width)` of the turned image, int32.
        start: `(top, left)` of the box in it.
        extent: `(height, width)` of the box.
        number: The orientation.

    Returns:
        `start` and `extent` before `turn`.
    """
    backwards = tf.gather(tf.constant(TURNS), number - 1)[1:] < 0
    start = tf.where(backwards, shape - start - extent, start)
    return turn_shape(start, number), turn_shape(tf.convert_to_tensor(extent), number)
