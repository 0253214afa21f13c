"""Random shifts and affine changes, drawn for each image of a batch; `targets.moved` applies them, to targets too."""

import math

import tensorflow as tf

from keras_vit.data.draws import scaled


def draw_shift(count, padding, draw):
    """Draws where each image is cut out of itself with a border around it: `(batch, 2)`, from 0 to twice the border."""
    return tf.cast(draw("padded_crop", count, 2) * (2 * padding + 1), "int32")


def draw_affine(count, height, width, settings, draw):
    """Draws a rotation, scaling, shear and shift of each image about its center.

    Returns:
        float32 tensor `(batch, 8)`, from output to input pixels, for `tf.raw_ops.ImageProjectiveTransformV3`.
    """
    limits = [
        settings.rotation * math.pi / 180,
        settings.scale,
        settings.shear,
        settings.translation,
        settings.translation,
    ]
    # float64, since in float32 the last bit of a cosine depends on how many are computed together
    numbers = tf.cast(scaled(draw("affine", count, 5), -1, 1), "float64")
    angle, scale, shear, right, down = tf.unstack(numbers * limits, axis=1)
    scale = 1 / (1 + scale)
    cos, sin = tf.cos(angle) * scale, tf.sin(angle) * scale
    a, b, c, d = cos, shear * cos - sin, sin, shear * sin + cos  # output pixel -> input pixel
    x0, y0 = (width - 1) / 2, (height - 1) / 2
    shift_x = x0 - a * x0 - b * y0 + right * width
    shift_y = y0 - c * x0 - d * y0 + down * height
    zero = tf.zeros_like(a)
    return tf.cast(tf.stack([a, b, shift_x, c, d, shift_y, zero, zero], axis=1), "float32")
