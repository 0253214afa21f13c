"""The Transformer decoder block."""

from typing import Literal

import keras
from keras import ops

from keras_vit.layers.attention.cross_attention import CrossAttention
from keras_vit.layers.attention.with_scores import WithCrossScores
from keras_vit.layers.blocks.mlp import ACTIVATIONS, MLP
from keras_vit.layers.blocks.norms import WithNormOrder, norm
from keras_vit.layers.blocks.remat_layer import RematLayer
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Rate, among


@keras.saving.register_keras_serializable(package="keras_vit")
class DecoderBlock(WithNormOrder, WithCrossScores, RematLayer):
    """Transformer decoder block: self-attention, attention to a context, then an MLP, each on a residual branch.

    Vaswani et al. 2017 (arXiv:1706.03762), section 3.1: post-norm, with a ReLU. With `use_causal_mask` it generates
    sequences; without, and with `positions`, it is a block of DETR's decoder (Carion et al. 2020, arXiv:2005.12872).
    Without a context, there is no second branch, as in a language model.

    Args:
        num_heads: Number of heads of both attentions; must divide the width.
        mlp_dim: Channels between the two dense layers of the MLP.
        norm_order: Position of the normalization in each branch: `"pre"`, `x + f(norm(x))`; or `"post"`,
            `norm(x + f(x))`.
        gelu: Activation of the MLP: `"relu"`, or a GELU; see `MLP`.
        epsilon: Epsilon of the layer normalizations.
        dropout: Rate of the dropout after each projection and in the MLP.
        attention_dropout: Rate of the dropout on the attention scores.

    Call arguments:
        x: Tensor of tokens.
        context: Tensor of tokens to attend to, such as an encoder's; its width may differ. `None` without this branch.
        attention_mask: Mask of the self-attention, as in `MultiHeadSelfAttention`.
        use_causal_mask: Whether a token attends only to itself and the tokens of `x` before it.
        context_mask: Mask of the attention to `context`: boolean, `(batch, tokens, context tokens)` or with heads.
        positions: Tensor added to `x` for queries and keys, but not for values; it broadcasts to the shape of `x`.
        context_positions: Tensor added to `context` for the keys; it broadcasts to the shape of `context`.
        return_attention_scores: Whether to return the attention scores to `context` too.
        training: Whether dropout is on.

    Input shape:
        `(batch, tokens, width)` and `(batch, context tokens, any width)`.

    Output shape:
        `(batch, tokens, width)`, and with `return_attention_scores` also `(batch, heads, tokens, context tokens)`.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> DecoderBlock(num_heads=4, mlp_dim=256)(keras.ops.zeros((2, 10, 64)), keras.ops.zeros((2, 50, 96))).shape
    (2, 10, 64)
    """

    def __init__(
        self,
        num_heads: int,
        mlp_dim: int,
        *,
        norm_order: Literal["pre", "post"] = "post",
        gelu: among(ACTIVATIONS) = "relu",
        epsilon: AboveZero = 1e-6,
        dropout: Rate = 0.0,
        attention_dropout: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.heads_and_hidden(num_heads, mlp_dim)
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.norm_order = norm_order
        self.gelu = gelu
        self.epsilon = epsilon
        self.dropout = dropout
        self.attention_dropout = attention_dropout

    def build(self, x_shape, context_shape=None):
        dtype = self.dtype_policy
        rates = {"dropout": self.dropout, "attention_dropout": self.attention_dropout, "dtype": dtype}
        self.attention = CrossAttention(self.num_heads, name="attention", **rates)
        self.attention.build(x_shape, x_shape)
        self.context_width = context_shape and context_shape[-1]
        if context_shape is not None:
            self.cross = CrossAttention(self.num_heads, name="cross", **rates)
            self.cross.build(x_shape, context_shape)
        self.mlp = MLP(self.mlp_dim, gelu=self.gelu, dropout=self.dropout, name="mlp", dtype=dtype)
        self.mlp.build(x_shape)
        for i in (1, 3) if context_shape is None else (1, 2, 3):
            layer = norm(f"norm{i}", rms_norm=False, epsilon=self.epsilon, dtype=dtype)
            layer.build(x_shape)
            setattr(self, f"norm{i}", layer)

    def call(
        self,
        x,
        context=None,
        attention_mask=None,
        use_causal_mask=False,
        context_mask=None,
        positions=None,
        context_positions=None,
        return_attention_scores=False,
        training=None,
    ):
        y = self.normed("pre", self.norm1, x, training)
        y = self.attention(
            y,
            y,
            attention_mask,
            use_causal_mask=use_causal_mask,
            positions=positions,
            context_positions=positions,
            training=training,
        )
        x, scores = self.normed("post", self.norm1, x + y, training), ()
        if context is not None:
            y = self.cross(
                self.normed("pre", self.norm2, x, training),
                context,
                context_mask,
                positions=positions,
                context_positions=context_positions,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            y, *scores = y if return_attention_scores else (y,)
            x = self.normed("post", self.norm2, x + y, training)
        x = self._with_mlp(x, training)
        return (x, *scores) if return_attention_scores else x

    def step(self, x, place, cache, context=None, fillers=None):
        """Computes new tokens of a sequence from cached keys and values, as a causal call of the whole sequence would.

        Args:
            x: Tensor of tokens, `(sequences, tokens, width)`.
            place: Position of the first token, an integer or a scalar integer tensor.
            cache: Pair of keys and values of earlier tokens, each `(sequences, length, heads, head_dim)`. Later
                positions may have any values.
            context: Keys and values from `cross.keys_and_values`, each `(contexts, context tokens, heads, head_dim)`,
                and perhaps a mask, booleans `(contexts, 1, 1, context tokens)`; or `None`. Each context may have
                several sequences in a row.
            fillers: Number of padding tokens at the start of each sequence, integers, `(sequences,)`, which are masked;
                `None` for no padding.

        Returns:
            Tokens, `(sequences, tokens, width)`, and the cache with their keys and values.
        """
        y = self.normed("pre", self.norm1, x)
        cache = tuple(_written(*each, place) for each in zip(cache, self.attention.keys_and_values(y)))
        rows = place + ops.arange(x.shape[1])[:, None]
        seen = (ops.arange(cache[0].shape[1])[None] <= rows)[None, None]  # (1, 1, tokens, length)
        if fillers is not None:  # padding attends to padding: attention to no token would be NaN
            none = ops.reshape(fillers, (-1, 1, 1, 1))
            seen = ops.logical_and(seen, ops.logical_or(ops.arange(cache[0].shape[1]) >= none, rows < none))
        x = self.normed("post", self.norm1, x + self.attention.attend(y, *cache, mask=seen))
        if context is not None:
            y = ops.reshape(self.normed("pre", self.norm2, x), (context[0].shape[0] or -1, -1, x.shape[-1]))
            y = ops.reshape(self.cross.attend(y, *context), ops.shape(x))
            x = self.normed("post", self.norm2, x + y)
        return self._with_mlp(x), cache

    def _with_mlp(self, x, training=None):
        y = self.mlp(self.normed("pre", self.norm3, x, training), training=training)
        return self.normed("post", self.norm3, x + y, training)


def _written(old, new, place):
    """Writes new keys or values into a cache; for one token by `where`, which all runtimes have."""
    if new.shape[1] > 1:
        return ops.slice_update(old, (0, place, 0, 0), new)
    return ops.where(ops.arange(old.shape[1])[:, None, None] == place, new, old)
