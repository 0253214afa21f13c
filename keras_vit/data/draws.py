"""Random numbers that depend on (seed, epoch, position of the image) alone."""

import zlib

import tensorflow as tf

_PHILOX = 1


def draws(seed, epoch, first):
    """Returns a source of random numbers for consecutive images.

    The numbers of an image depend neither on its batch nor on the order in which batches are made: Philox (Salmon et
    al. 2011) computes the n-th number without those before it.

    Args:
        seed: Integer, of the run.
        epoch: Integer or scalar int64 tensor.
        first: Position of the first image in the epoch, an integer or scalar int64 tensor.

    Returns:
        A function `draw(name, count, numbers)`, which returns `(count, numbers)` float32 in [0, 1), independent for
        each `name`.
    """
    seed, epoch, first = (tf.cast(value, "int64") for value in (seed, epoch, first))

    def draw(name, count, numbers):
        pair = tf.random.fold_in(tf.stack([seed, epoch]), zlib.crc32(name.encode()) & 0x7FFFFFFF)
        key = tf.reshape(tf.bitcast(tf.cast(pair, "int32"), "uint64"), [1])
        groups = -(-numbers // 4)  # each step of the counter makes four numbers
        bits = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[count, 4 * groups],
            key=key,
            counter=tf.stack([tf.bitcast(first * groups, "uint64"), tf.constant(0, "uint64")]),
            alg=_PHILOX,
            dtype="uint32",
        )
        return tf.cast(tf.bitwise.right_shift(bits[:, :numbers], tf.constant(8, "uint32")), "float32") * 2.0**-24

    return draw


def scaled(uniform, low, high):
    """Scales numbers in [0, 1) to [low, high)."""
    return low + (high - low) * uniform
