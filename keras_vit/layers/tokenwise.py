"""A layer applied to all tokens of a batch as one matrix."""

from keras import ops


def tokenwise(layer, x):
    """Applies a layer to all tokens of a batch as one matrix; the result is the same.

    Libraries such as oneDNN can then fuse the matrix product with bias and GELU, and the gradient of the bias is a sum
    over one axis.

    Args:
        layer: Layer that maps `(tokens, width)` to `(tokens, any width)`.
        x: Tensor of tokens, `(batch, ..., width)`.

    Returns:
        Tensor of shape `(batch, ..., any width)`.
    """
    y = layer(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(y, (-1, *ops.shape(x)[1:-1], y.shape[-1]))
