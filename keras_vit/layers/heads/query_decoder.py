"""The decoder of DETR: learned queries that attend to an image's tokens."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.decoder_block import DecoderBlock
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.heads.set_boxes import SetHead
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils import checks
from keras_vit.utils.resampling import sincos_2d
from keras_vit.utils.typed import AboveZero, Positive, Rate


@keras.saving.register_keras_serializable(package="keras_vit")
class QueryDecoder(Layer):
    """Decoder blocks on learned queries, one for each box, and a `SetHead`.

    Carion et al. 2020 (DETR, arXiv:2005.12872), section 3.2 and appendix A.3: the queries are positions, which each
    block adds to tokens that start as zeros; sinusoidal positions are added to the image's tokens for the keys; one
    normalization follows each block.

    Args:
        units: Number of classes.
        queries: Number of queries.
        num_heads: Number of heads; must divide the width.
        mlp_dim: Channels between the two dense layers of each MLP.
        depth: Number of blocks.
        grid: `(rows, columns)` of the image's tokens.
        dropout: Dropout rate in the blocks.
        epsilon: Epsilon of the layer normalizations.

    Call arguments:
        tokens: Tensor of the image's tokens, without prefix tokens.
        return_attention_scores: Whether to return the attention scores of the last block to the tokens too, float32
            `(batch, heads, queries, rows * columns)`.
        training: Whether dropout is on.

    Input shape:
        `(batch, rows * columns, width)`.

    Output shape:
        `(batch, depth, queries, 4 + units + 1)`, float32: the output of `SetHead` after each block.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> QueryDecoder(3, 10, num_heads=4, mlp_dim=64, depth=2, grid=(7, 7))(keras.ops.zeros((2, 49, 32))).shape
    (2, 2, 10, 8)
    """

    def __init__(
        self,
        units: Positive,
        queries: Positive,
        num_heads: int,
        mlp_dim: int,
        *,
        depth: Positive = 6,
        grid: tuple[int, int],
        dropout: Rate = 0.0,
        epsilon: AboveZero = 1e-5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.heads_and_hidden(num_heads, mlp_dim)
        self.units = units
        self.queries = queries
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.depth = depth
        self.grid = checks.pair("grid", grid)
        self.dropout = dropout
        self.epsilon = epsilon

    def build(self, tokens_shape):
        width, dtype = tokens_shape[-1], self.dtype_policy
        if tokens_shape[1] != self.grid[0] * self.grid[1]:
            raise ValueError(f"There must be a token for each place of {self.grid}. Received: {tokens_shape[1]} tokens")
        self.query = self.add_weight((self.queries, width), "random_normal", name="query")
        self.positions = sincos_2d(self.grid, width)[None]
        shape = (tokens_shape[0], self.queries, width)
        self.blocks = []
        for i in range(self.depth):
            rates = {"dropout": self.dropout, "attention_dropout": self.dropout}
            block = DecoderBlock(
                self.num_heads, self.mlp_dim, epsilon=self.epsilon, name=f"block{i}", dtype=dtype, **rates
            )
            block.build(shape, tokens_shape)
            self.blocks.append(block)
        self.norm = norm("norm", rms_norm=False, epsilon=self.epsilon, dtype=dtype)
        self.norm.build(shape)
        self.head = SetHead(self.units, name="head", dtype=dtype)
        self.head.build((tokens_shape[0], self.depth, *shape[1:]))

    def call(self, tokens, return_attention_scores=False, training=None):
        query = ops.expand_dims(ops.cast(self.query, self.compute_dtype), 0)
        places = ops.convert_to_tensor(self.positions, self.compute_dtype)
        x = ops.zeros((ops.shape(tokens)[0], self.queries, tokens.shape[-1]), self.compute_dtype)
        outputs = []
        for block in self.blocks:
            last = return_attention_scores and block is self.blocks[-1]
            x = block(
                x,
                tokens,
                positions=query,
                context_positions=places,
                return_attention_scores=last,
                training=training,
            )
            x, *scores = x if last else (x,)
            outputs.append(tokenwise(self.norm, x))
        outputs = self.head(ops.stack(outputs, axis=1))
        return (outputs, *scores) if return_attention_scores else outputs

    def compute_output_shape(self, tokens_shape):
        return tokens_shape[0], self.depth, self.queries, 4 + self.units + 1

    def compute_output_spec(self, tokens, return_attention_scores=False, training=None):
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), "float32")
