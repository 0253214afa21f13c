"""Learned queries in front of the tokens of an image."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class QueryTokens(Layer):
    """Puts learned queries in front of tokens.

    The blocks that follow let queries and patches attend to each other, without another decoder. Kerssies et al. 2025
    (arXiv:2503.19108, "EoMT"), section 3.2: before the last four blocks. `QueryMasks` reads the queries.

    Args:
        queries: Number of queries.

    Call arguments:
        tokens: Tensor of tokens.

    Input shape:
        `(batch, tokens, width)`.

    Output shape:
        `(batch, queries + tokens, width)`.

    Raises:
        ValueError: If `queries` is not a positive integer.

    Example:

    >>> QueryTokens(100)(keras.ops.zeros((2, 197, 192))).shape
    (2, 297, 192)
    """

    ndim = 3

    def __init__(self, queries: Positive, **kwargs):
        super().__init__(**kwargs)
        self.queries = queries

    def build(self, input_shape):
        normal = keras.initializers.RandomNormal(stddev=1.0)  # as PyTorch's embeddings
        self.tokens = self.add_weight(name="tokens", shape=(1, self.queries, input_shape[-1]), initializer=normal)

    def call(self, tokens):
        queries = ops.cast(self.tokens, tokens.dtype)
        queries = ops.broadcast_to(queries, (ops.shape(tokens)[0], *queries.shape[1:]))
        return ops.concatenate([queries, tokens], axis=1)  # (batch, queries + tokens, width)

    def compute_output_shape(self, input_shape):
        batch, tokens, width = input_shape
        return batch, tokens and self.queries + tokens, width
