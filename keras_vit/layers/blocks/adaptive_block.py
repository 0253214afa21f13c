"""An encoder block with adaptive layer normalization."""

import keras
from keras import ops

from keras_vit.layers.attention.attend import check_mask
from keras_vit.layers.attention.cross_attention import CrossAttention
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.blocks.stochastic_depth import StochasticDepth
from keras_vit.layers.blocks.transformer_block import TransformerBlock
from keras_vit.layers.dense import Dense
from keras_vit.utils import checks


@keras.saving.register_keras_serializable(package="keras_vit")
class AdaptiveBlock(TransformerBlock):
    """`TransformerBlock` with adaptive normalizations and gates, which depend on a condition, as in diffusion models.

    Peebles and Xie 2023 (arXiv:2212.09748), section 3.2, "adaLN-Zero". A dense layer computes from the condition a
    shift, a scale and a gate for each branch: `x + gate * f(norm(x) * (1 + scale) + shift)`. It is initialized with
    zeros, so that a new block is the identity. Layer normalizations have no weights; RMS normalizations keep their
    scale.

    With a context, such as the tokens of a text, there is a third branch between the two, with its own shift, scale and
    gate: attention to the context, at the place where Chen et al. 2024 have it (arXiv:2310.00426, section 2.3).

    Args:
        num_heads: As in `TransformerBlock`.
        mlp_dim: As in `TransformerBlock`.
        mlp_epsilon: Epsilon of the normalization before the MLP; `None` for `epsilon`.
        **kwargs: Other arguments of `TransformerBlock`, but no `layer_scale` and `parallel`, and
            `norm_order="pre"` only.

    Call arguments:
        x: Tensor of tokens.
        condition: Tensor with a vector for each image.
        context: Tensor of tokens to attend to; its width may differ. `None` without this branch.
        context_mask: Boolean tensor, `(batch, tokens or 1, context tokens)` or with heads, `True` where a token may
            attend to a token of the context; or `None`.
        return_attention_scores: As in `MultiHeadSelfAttention`.
        training: Whether dropout and stochastic depth are on.
        scores_offset: As in `MultiHeadSelfAttention`.

    Input shape:
        `(batch, tokens, width)`, `(batch, any width)`, and of a context `(batch, context tokens, any width)`.

    Output shape:
        `(batch, tokens, width)`, and with `return_attention_scores` also `(batch, heads, tokens, tokens)`.

    Raises:
        ValueError: For an argument outside its range, another order of normalizations, a `layer_scale` or `parallel`.

    Example:

    >>> AdaptiveBlock(num_heads=4, mlp_dim=256)(keras.ops.zeros((2, 49, 64)), keras.ops.zeros((2, 64))).shape
    (2, 49, 64)
    """

    def __init__(self, num_heads: int, mlp_dim: int, *, mlp_epsilon: float | None = None, **kwargs):
        super().__init__(num_heads, mlp_dim, **kwargs)
        checks.above_zero(mlp_epsilon=self.epsilon if mlp_epsilon is None else mlp_epsilon)
        if self.norm_order != "pre" or self.layer_scale is not None or self.parallel:
            raise ValueError(
                "The condition scales and gates two branches: norm_order must be 'pre', layer_scale None, and parallel "
                f"False. Received: norm_order={self.norm_order!r}, layer_scale={self.layer_scale!r}, "
                f"parallel={self.parallel!r}"
            )
        self.mlp_epsilon = mlp_epsilon

    def norm(self, name, **settings):
        """Returns a normalization layer as `norms.norm`, without weights and with its own epsilon before the MLP."""
        if name == "norm2" and self.mlp_epsilon is not None:
            settings["epsilon"] = self.mlp_epsilon
        return norm(name, **settings, weights=False)

    def build(self, x_shape, condition_shape, context_shape=None):
        super().build(x_shape)
        dtype = self.dtype_policy
        self.context_width = context_shape and context_shape[-1]
        if context_shape is not None:
            rates = {"dropout": self.dropout, "attention_dropout": self.attention_dropout, "dtype": dtype}
            self.cross = CrossAttention(self.num_heads, qkv_bias=self.qkv_bias, name="cross", **rates)
            self.cross.build(x_shape, context_shape)
            self.norm3 = self.norm("norm3", rms_norm=self.rms_norm, epsilon=self.epsilon, dtype=dtype)
            self.norm3.build(x_shape)
            self.path3 = StochasticDepth(self.stochastic_depth, name="path3", dtype=dtype)
            self.path3.build(x_shape)
        branches = 2 if context_shape is None else 3
        zeros = {"kernel_initializer": "zeros", "dtype": dtype}
        self.modulation = Dense(3 * branches * x_shape[-1], name="modulation", **zeros)
        self.modulation.build(condition_shape)

    def call(
        self,
        x,
        condition,
        context=None,
        context_mask=None,
        return_attention_scores=False,
        training=None,
        scores_offset=None,
    ):
        numbers = ops.expand_dims(self.modulation(condition), 1)
        shift1, scale1, gate1, shift2, scale2, gate2, *third = ops.split(
            numbers, 6 if context is None else 9, axis=-1
        )  # (batch, 1, width) each
        y = self.attention(
            self.normed("pre", self.norm1, x, training) * (1 + scale1) + shift1,
            return_attention_scores=return_attention_scores,
            training=training,
            scores_offset=scores_offset,
        )
        y, *scores = y if return_attention_scores else (y,)
        x = x + self.path1(gate1 * y, training=training)
        if context is not None:
            shift3, scale3, gate3 = third
            y = self.normed("pre", self.norm3, x, training) * (1 + scale3) + shift3
            y = self.cross(y, context, context_mask, training=training)
            x = x + self.path3(gate3 * y, training=training)
        y = self.mlp(self.normed("pre", self.norm2, x, training) * (1 + scale2) + shift2, training=training)
        x = x + self.path2(gate2 * y, training=training)
        return (x, *scores) if return_attention_scores else x

    def compute_output_shape(self, x_shape, condition_shape=None, context_shape=None):
        return x_shape

    def compute_output_spec(
        self,
        x,
        condition,
        context=None,
        context_mask=None,
        return_attention_scores=False,
        training=None,
        scores_offset=None,
    ):
        if context_mask is not None:
            check_mask(context_mask)
        if (context is None) != (self.context_width is None) or (
            context is not None and context.shape[-1] != self.context_width
        ):
            raise ValueError(
                f"`context` must have the width that the layer was built with, {self.context_width}. "
                f"Received: {None if context is None else context.shape[-1]}"
            )
        return super().compute_output_spec(x, return_attention_scores=return_attention_scores)
