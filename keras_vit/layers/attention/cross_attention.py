"""Multi-head attention of one sequence to another."""

import keras
from keras import ops

from keras_vit.layers.attention.attend import attention_scores, fused_attention, joined_mask, weighted
from keras_vit.layers.attention.with_scores import WithCrossScores
from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils.typed import Positive, Rate, Switch


@keras.saving.register_keras_serializable(package="keras_vit")
class CrossAttention(WithCrossScores, Layer):
    """Multi-head attention of tokens to the tokens of a context.

    Vaswani et al. 2017 (arXiv:1706.03762), section 3.2, encoder-decoder attention. The softmax is computed in float32
    under any precision policy. Positions may be added to the inputs of queries and keys, but not of values, as in DETR
    (Carion et al. 2020, arXiv:2005.12872, appendix A.3).

    Args:
        num_heads: Number of heads; must divide the width.
        qkv_bias: Whether query, key and value have a bias.
        dropout: Rate of the dropout after the output projection.
        attention_dropout: Rate of the dropout on the attention scores.

    Call arguments:
        x: Tensor of tokens.
        context: Tensor of tokens to attend to. Its width may differ.
        attention_mask: Boolean tensor, `(batch, tokens, context tokens)` or
            `(batch, heads or 1, tokens, context tokens)`; `True` where the token of the row may attend to the token of
            the column.
        use_causal_mask: Whether token `i` attends only to the context tokens up to `i`.
        positions: Tensor added to `x` for the queries, which broadcasts to its shape.
        context_positions: Tensor added to `context` for the keys, which broadcasts to its shape.
        return_attention_scores: Whether to return the attention scores (after the softmax, float32) too.
        training: Whether dropout is on.

    Input shape:
        `(batch, tokens, width)` and `(batch, context tokens, any width)`.

    Output shape:
        `(batch, tokens, width)`, and with `return_attention_scores` also `(batch, heads, tokens, context tokens)`.

    Raises:
        ValueError: If `num_heads` does not divide the width, or a rate is outside [0, 1).

    Example:

    >>> CrossAttention(num_heads=4)(keras.ops.zeros((2, 10, 64)), keras.ops.zeros((2, 50, 96))).shape
    (2, 10, 64)
    """

    def __init__(
        self,
        num_heads: Positive,
        *,
        qkv_bias: Switch = True,
        dropout: Rate = 0.0,
        attention_dropout: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.qkv_bias = qkv_bias
        self.dropout = dropout
        self.attention_dropout = attention_dropout

    def build(self, x_shape, context_shape):
        for name, shape in {"x": x_shape, "context": context_shape}.items():
            if len(shape) != 3:
                raise ValueError(f"`{name}` must be (batch, tokens, width). Received: shape {tuple(shape)}")
        width, dtype = x_shape[-1], self.dtype_policy
        if width % self.num_heads:
            raise ValueError(f"A width of {width} cannot be split into {self.num_heads} heads: it must divide evenly.")
        self.head_dim = width // self.num_heads
        self.scale = self.head_dim**-0.5
        self.context_width = context_shape[-1]
        for name, shape in {"query": x_shape, "key": context_shape, "value": context_shape}.items():
            dense = Dense(width, use_bias=self.qkv_bias, name=name, dtype=dtype)
            dense.build(shape)
            setattr(self, name, dense)
        self.proj = Dense(width, name="proj", dtype=dtype)
        self.proj.build(x_shape)
        self.drop = keras.layers.Dropout(self.dropout, name="drop", dtype=dtype)
        self.attention_drop = keras.layers.Dropout(self.attention_dropout, name="attention_drop", dtype=dtype)

    def call(
        self,
        x,
        context,
        attention_mask=None,
        use_causal_mask=False,
        positions=None,
        context_positions=None,
        return_attention_scores=False,
        training=None,
    ):
        key, value = self.keys_and_values(context, context_positions)
        mask = joined_mask(attention_mask, use_causal_mask, ops.shape(x)[1], ops.shape(context)[1])
        return self.attend(x, key, value, mask, positions, return_attention_scores, training)

    def keys_and_values(self, context, positions=None):
        """Computes keys and values.

        Args:
            context: Tensor, `(batch, context tokens, any width)`.
            positions: Tensor added to `context` for the keys, or `None`.

        Returns:
            Two tensors, `(batch, context tokens, heads, head_dim)` each.
        """
        key = self._heads(self.key, context if positions is None else context + positions)
        return key, self._heads(self.value, context)

    def attend(self, x, key, value, mask=None, positions=None, return_attention_scores=False, training=None):
        """Computes the layer from keys and values.

        Args:
            x: Tensor, `(batch, tokens, width)`.
            key: Tensor, `(batch, context tokens, heads, head_dim)`.
            value: Tensor like `key`.
            mask: Boolean tensor that broadcasts to `(batch, heads, tokens, context tokens)`; or `None`.
            positions: As in the call.
            return_attention_scores: As in the call.
            training: As in the call.

        Returns:
            As the call.
        """
        query = self._heads(self.query, x if positions is None else x + positions)
        if return_attention_scores or (training and self.attention_dropout > 0):
            scores = attention_scores(query * self.scale, key, mask=mask)
            y = weighted(self.attention_drop(ops.cast(scores, value.dtype), training=training), value)
        else:
            y = fused_attention(query * self.scale, key, value, mask=mask, training=training)
        y = self.drop(tokenwise(self.proj, ops.reshape(y, ops.shape(x))), training=training)
        return (y, scores) if return_attention_scores else y

    def _heads(self, dense, x):
        return ops.reshape(tokenwise(dense, x), (-1, ops.shape(x)[1], self.num_heads, self.head_dim))
