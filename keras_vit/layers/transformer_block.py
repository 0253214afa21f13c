"""The encoder block."""

import keras

from keras_vit import checks
from keras_vit.layers.attention import MultiHeadSelfAttention, output_spec
from keras_vit.layers.layer_scale import LayerScale
from keras_vit.layers.mlp import GELUS, MLP
from keras_vit.layers.remat_layer import RematLayer
from keras_vit.layers.stochastic_depth import StochasticDepth
from keras_vit.layers.tokenwise import tokenwise


@keras.saving.register_keras_serializable(package="keras_vit")
class TransformerBlock(RematLayer):
    """Transformer encoder block: self-attention, then an MLP, each on a residual branch.

    Pre-norm, `x + f(norm(x))`, as in the ViT paper (arXiv:2010.11929, equations 2 and 3), or
    post-norm, `norm(x + f(x))`, as in the original Transformer (arXiv:1706.03762).

    Args:
        num_heads: Number of attention heads; must divide the width.
        mlp_dim: Channels between the two dense layers of the MLP.
        norm_first: Pre-norm if true, post-norm if false.
        qkv_bias: Whether query, key and value have a bias.
        key_bias: Whether the key has one too; see `MultiHeadSelfAttention`.
        qk_norm: Whether query and key are normalised in each head.
        rotary: Arguments of `RotaryPositions` for queries and keys, or `None`.
        gelu: `"tanh"`, `"exact"` or `"quick"`; see `MLP`.
        swiglu: Whether the MLP is gated; see `MLP`.
        epsilon: Added to the variance in the layer normalisations.
        dropout: Rate of the dropout after the attention's projection and in the MLP.
        attention_dropout: Rate of the dropout on the attention scores.
        stochastic_depth: Probability to drop each branch for a sample.
        layer_scale: Initial value of a `LayerScale` on each branch; no `LayerScale` if `None`.

    Call arguments:
        x: Tensor of tokens.
        attention_mask: As in `MultiHeadSelfAttention`.
        use_causal_mask: As in `MultiHeadSelfAttention`.
        return_attention_scores: As in `MultiHeadSelfAttention`.
        training: Whether dropout and stochastic depth are on.
        scores_offset: As in `MultiHeadSelfAttention`.

    Input shape:
        `(batch, tokens, width)`.

    Output shape:
        `(batch, tokens, width)`, and with `return_attention_scores` also `(batch, heads, tokens, tokens)`.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> TransformerBlock(num_heads=4, mlp_dim=256)(keras.ops.zeros((2, 50, 64))).shape
    (2, 50, 64)
    """

    def __init__(
        self,
        num_heads: int,
        mlp_dim: int,
        *,
        norm_first: bool = True,
        qkv_bias: bool = True,
        key_bias: bool = True,
        qk_norm: bool = False,
        rotary: dict | None = None,
        gelu: str = "tanh",
        swiglu: bool = False,
        epsilon: float = 1e-6,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        layer_scale: float | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.positive(num_heads=num_heads, mlp_dim=mlp_dim)
        checks.one_of("gelu", gelu, GELUS)
        checks.rate(dropout=dropout, attention_dropout=attention_dropout, stochastic_depth=stochastic_depth)
        checks.switch(norm_first=norm_first, qkv_bias=qkv_bias, key_bias=key_bias, qk_norm=qk_norm, swiglu=swiglu)
        checks.above_zero(epsilon=epsilon)
        checks.number(**({} if layer_scale is None else {"layer_scale": layer_scale}))
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.norm_first = norm_first
        self.qkv_bias = qkv_bias
        self.key_bias = key_bias
        self.qk_norm = qk_norm
        self.rotary = rotary
        self.gelu = gelu
        self.swiglu = swiglu
        self.epsilon = epsilon
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.stochastic_depth = stochastic_depth
        self.layer_scale = layer_scale

    def build(self, input_shape):
        dtype = self.dtype_policy
        self.norm1 = keras.layers.LayerNormalization(epsilon=self.epsilon, name="norm1", dtype=dtype)
        self.attention = MultiHeadSelfAttention(
            self.num_heads,
            qkv_bias=self.qkv_bias,
            key_bias=self.key_bias,
            qk_norm=self.qk_norm,
            rotary=self.rotary,
            epsilon=self.epsilon,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            name="attention",
            dtype=dtype,
        )
        self.norm2 = keras.layers.LayerNormalization(epsilon=self.epsilon, name="norm2", dtype=dtype)
        self.mlp = MLP(self.mlp_dim, gelu=self.gelu, swiglu=self.swiglu, dropout=self.dropout, name="mlp", dtype=dtype)
        self.path1 = StochasticDepth(self.stochastic_depth, name="path1", dtype=dtype)
        self.path2 = StochasticDepth(self.stochastic_depth, name="path2", dtype=dtype)
        layers = [self.norm1, self.attention, self.norm2, self.mlp, self.path1, self.path2]
        if self.layer_scale is not None:
            self.scale1 = LayerScale(self.layer_scale, name="scale1", dtype=dtype)
            self.scale2 = LayerScale(self.layer_scale, name="scale2", dtype=dtype)
            layers += [self.scale1, self.scale2]
        for layer in layers:
            layer.build(input_shape)

    def call(
        self,
        x,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        scores_offset=None,
    ):
        y = tokenwise(self.norm1, x) if self.norm_first else x
        y = self.attention(
            y,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            scores_offset=scores_offset,
        )
        y, scores = y if return_attention_scores else (y, None)
        y = y if self.layer_scale is None else self.scale1(y)
        x = x + self.path1(y, training=training)
        x = x if self.norm_first else tokenwise(self.norm1, x)

        y = tokenwise(self.norm2, x) if self.norm_first else x
        y = self.mlp(y, training=training)
        y = y if self.layer_scale is None else self.scale2(y)
        x = x + self.path2(y, training=training)
        x = x if self.norm_first else tokenwise(self.norm2, x)
        return (x, scores) if return_attention_scores else x

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(
        self,
        x,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        scores_offset=None,
    ):
        return output_spec(self, x, return_attention_scores)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "mlp_dim": self.mlp_dim,
            "norm_first": self.norm_first,
            "qkv_bias": self.qkv_bias,
            "key_bias": self.key_bias,
            "qk_norm": self.qk_norm,
            "rotary": self.rotary,
            "gelu": self.gelu,
            "swiglu": self.swiglu,
            "epsilon": self.epsilon,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "stochastic_depth": self.stochastic_depth,
            "layer_scale": self.layer_scale,
        }
