"""What is done to each token alone, done to all of them at once."""

from keras import ops


def tokenwise(layer, x):
    """Calls `layer` on the tokens of a whole batch as one matrix.

    A matrix is what libraries fuse with a bias and a GELU (oneDNN), and what the bias' gradient is summed over along
    one axis; the result is the same.

    Args:
        layer: Layer, from `(tokens, width)` to `(tokens, any width)`.
        x: Tensor of tokens, `(batch, ..., width)`.

    Returns:
        Tensor of shape `(batch, ..., any width)`.
    """
    y = layer(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(y, (-1, *ops.shape(x)[1:-1], y.shape[-1]))
