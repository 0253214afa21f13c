"""Uniform noise for each image of a batch, and zeros, the targets where there are none."""

import tensorflow as tf


def noise(seed, images, count):
    """Returns `count` numbers in [0, 1) for each image of a batch, `(batch, count)`, float32.

    Args:
        seed: Integer tensor, `(2,)`, which alone determines them.
        images: Tensor of the batch.
        count: Integer.
    """
    return tf.random.stateless_uniform((tf.shape(images)[0], count), seed)


def zeros(images):
    """Returns a zero for each image of a batch, float32 `(batch, 1)`."""
    return tf.zeros((tf.shape(images)[0], 1))
