"""Which of an image's texts is seen."""

import tensorflow as tf


def drawn(ids, seed):
    """Returns one of the texts of each image, drawn at random.

    Args:
        ids: Integer tensor, `(batch, most, length)`; rows of -1 after an image's last text.
        seed: Integer tensor, `(2,)`.

    Returns:
        A tensor `(batch, length)`.
    """
    count = tf.reduce_sum(tf.cast(ids[:, :, 0] >= 0, "int32"), axis=1)
    numbers = tf.random.stateless_uniform(tf.shape(count), tf.random.fold_in(seed, 1))
    place = tf.minimum(tf.cast(numbers * tf.cast(count, "float32"), "int32"), count - 1)
    return tf.gather(ids, place, batch_dims=1)
