"""A layer applied to all tokens of a batch as one matrix."""

from keras import ops


def tokenwise(layer, x):
    """Applies a layer to all tokens of a batch as one matrix; the result is the same.

    Libraries such as oneDNN fuse a product of two matrices with the bias and the GELU, and the bias's gradient becomes
    a sum over one axis.

    Args:
        layer: Layer that maps `(tokens, width)` to `(tokens, any width)`.
        x: Tensor of tokens, `(batch, ..., width)`.

    Returns:
        Tensor of shape `(batch, ..., any width)`.
    """
    y = layer(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(y, (-1, *ops.shape(x)[1:-1], y.shape[-1]))
