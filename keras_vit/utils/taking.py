"""Rows of each array of a batch."""

from keras import ops


def rows_of(values, index):
    """Returns rows of each array of a batch, `(batch, count, ...)`.

    As `keras.ops.take_along_axis` with indices that are equal along all later axes, which Keras writes out for each
    number on TensorFlow; here a row is taken as a whole.

    Args:
        values: Tensor, `(batch, rows, ...)`, of known sizes but the batch.
        index: Integer tensor, `(batch, count)`, 0 to `rows - 1`.
    """
    batch, rows = values.shape[0] or ops.shape(values)[0], values.shape[1]
    first = ops.arange(batch, dtype="int32")[:, None] * rows
    return ops.take(ops.reshape(values, (-1, *values.shape[2:])), ops.cast(index, "int32") + first, axis=0)
