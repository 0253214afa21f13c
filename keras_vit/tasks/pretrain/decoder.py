"""The decoder of masked autoencoders."""

import math

import keras
from keras import ops

from keras_vit.layers import TransformerBlock
from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.layers.inputs.patch_dropout import rows
from keras_vit.utils import checks
from keras_vit.utils.resampling import sincos_1d, sincos_2d

POSITIONS = {  # functions of the grid and the width
    "sincos2d": lambda grid, width: sincos_2d(grid, width, inclusive=False),
    "sincos1d": lambda grid, width: sincos_1d(math.prod(grid), width),
}


@keras.saving.register_keras_serializable(package="keras_vit")
class PixelDecoder(Layer):
    """Predicts the pixels of all patches from the tokens of the visible ones.

    A linear layer projects the tokens to the decoder's width, a learned mask token replaces each masked patch, and
    fixed sine-cosine positions are added. Blocks, a normalization and a linear layer follow. He et al. 2021
    (arXiv:2111.06377), section 3.

    Args:
        width: Channels of a token, a multiple of 4 (of 2 with `"sincos1d"`) and of `num_heads`.
        depth: Number of blocks.
        num_heads: Number of attention heads.
        values: Number of values to predict for each patch.
        grid: `(rows, columns)` of the patches.
        num_prefix: Number of tokens before the first patch, such as a class token. Their positions are zeros.
        mlp_dim: Hidden channels of each MLP; `None` for four times the width.
        qkv_bias: Whether query, key and value have a bias.
        gelu: `"tanh"`, `"exact"` or `"quick"`; see `MLP`.
        epsilon: Epsilon of every layer normalization.
        key_bias: Whether the key has a bias too, if query and value have one.
        positions: `"sincos2d"`, or `"sincos1d"` over all cells of the grid, as in VideoMAE (Tong et al. 2022,
            arXiv:2203.12602).
        embed_bias: Whether the first linear layer has a bias; `False` for VideoMAE.
        last_epsilon: Epsilon of the normalization after the blocks; `None` for `epsilon`.

    Call arguments:
        tokens: Tensor of prefix tokens and visible tokens.
        order: Integer tensor: the index of each patch among the visible patches, in any order; masked patches have the
            indices after them.

    Input shape:
        `(batch, prefix + visible, any width)` and `(batch, patches)`.

    Output shape:
        `(batch, patches, values)`.

    Raises:
        ValueError: For an argument outside its range.
    """

    def __init__(
        self,
        width: int,
        depth: int,
        num_heads: int,
        values: int,
        *,
        grid: tuple[int, int],
        num_prefix: int = 1,
        mlp_dim: int | None = None,
        qkv_bias: bool = True,
        gelu: str = "tanh",
        epsilon: float = 1e-6,
        key_bias: bool = True,
        positions: str = "sincos2d",
        embed_bias: bool = True,
        last_epsilon: float | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.one_of("positions", positions, POSITIONS)
        checks.switch(embed_bias=embed_bias)
        checks.positive(width=width, depth=depth, num_heads=num_heads, values=values)
        checks.positive(**({} if mlp_dim is None else {"mlp_dim": mlp_dim}))
        self.width = width
        self.depth = depth
        self.num_heads = num_heads
        self.values = values
        self.grid = checks.pair("grid", grid)
        self.num_prefix = num_prefix
        self.mlp_dim = mlp_dim
        self.block = {"qkv_bias": qkv_bias, "gelu": gelu, "epsilon": epsilon, "key_bias": key_bias}
        self.positions = positions
        self.embed_bias = embed_bias
        self.last_epsilon = last_epsilon

    def build(self, tokens_shape, order_shape=None):
        dtype = self.dtype_policy
        positions = POSITIONS[self.positions](self.grid, self.width)  # (patches, width)
        shape = (tokens_shape[0], self.num_prefix + len(positions), self.width)
        self.embed = Dense(self.width, use_bias=self.embed_bias, name="embed", dtype=dtype)
        self.embed.build(tokens_shape)
        self.mask_token = self.add_weight(
            name="mask_token", shape=(1, 1, self.width), initializer=keras.initializers.RandomNormal(stddev=0.02)
        )
        self.position = self.add_weight(
            name="position",
            shape=(1, self.num_prefix + len(positions), self.width),
            initializer=lambda shape, dtype: ops.pad(ops.cast(positions, dtype), ((self.num_prefix, 0), (0, 0)))[None],
            trainable=False,
        )
        self.blocks = [
            TransformerBlock(
                self.num_heads, self.mlp_dim or 4 * self.width, **self.block, name=f"block_{i}", dtype=dtype
            )
            for i in range(self.depth)
        ]
        last = self.block["epsilon"] if self.last_epsilon is None else self.last_epsilon
        self.norm = keras.layers.LayerNormalization(epsilon=last, name="norm", dtype=dtype)
        self.predict = Dense(self.values, name="predict", dtype=dtype)
        for layer in (*self.blocks, self.norm, self.predict):
            layer.build(shape)

    def call(self, tokens, order):
        x = self.embed(tokens)  # (batch, prefix + visible, width)
        patches, n = order.shape[1], self.num_prefix
        masked = (ops.shape(x)[0], patches + n - x.shape[1], self.width)
        tail = ops.broadcast_to(ops.cast(self.mask_token, x.dtype), masked)
        x = ops.concatenate([x[:, :n], rows(ops.concatenate([x[:, n:], tail], axis=1), order)], axis=1)
        x = x + ops.cast(self.position, x.dtype)  # (batch, prefix + patches, width)
        for block in self.blocks:
            x = block(x)
        return self.predict(self.norm(x)[:, n:])  # (batch, patches, values)

    def compute_output_shape(self, tokens_shape, order_shape):
        return (tokens_shape[0], order_shape[1], self.values)

    def get_config(self):
        return {**super().get_config(), **self.block}
