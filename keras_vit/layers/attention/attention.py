"""Multi-head self-attention."""

import keras
from keras import ops

from keras_vit.layers.attention import terms
from keras_vit.layers.attention import windows as windowed
from keras_vit.layers.attention.attend import attend, attention_scores, fused_attention, joined_mask, weighted
from keras_vit.layers.attention.blockwise import blockwise_attention, suits
from keras_vit.layers.attention.relative import RelativePositions
from keras_vit.layers.attention.rotary import OPTIONS, RotaryPositions
from keras_vit.layers.attention.with_scores import WithScores
from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.dense import Dense
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Positive, Rate, Switch

NARROW = 32  # on TensorFlow, `attend` is faster in inference too for narrower heads


@keras.saving.register_keras_serializable(package="keras_vit")
class MultiHeadSelfAttention(WithScores, Layer):
    """Multi-head self-attention.

    Vaswani et al. 2017 (arXiv:1706.03762), section 3.2. One matrix product computes query, key and value; the softmax
    is computed in float32 under any precision policy. The layer computes attention in one of four ways:

    - in blocks of queries, on CPUs with 1,024 tokens or more, unless scores are returned or offset: memory then grows
      linearly with the tokens. On TensorFlow under XLA, blocks have no second derivative: to compute it, set
      `MultiHeadSelfAttention.takes_blocks` to `False`;
    - from the scores, if these are returned, offset or dropped;
    - by `attend`, which has a custom gradient: on TensorFlow, without mask, relative positions and float16, in training
      or with heads narrower than 32;
    - else by `keras.ops.dot_product_attention`, a fused kernel on backends that have one. TensorFlow has none, and
      computes the scores.

    Args:
        num_heads: Number of heads; must divide the width.
        qkv_bias: Whether query, key and value have a bias.
        key_bias: Whether the key has a bias too, if query and value have one. Without rotary positions it has no
            effect on the output.
        proj_bias: Whether the output projection has a bias.
        qk_norm: Whether query and key are normalized in each head (Dehghani et al. 2023, arXiv:2302.05442).
        rotary: Arguments of `RotaryPositions`, which rotates queries and keys after their normalization; or `None`.
        relative: Arguments of `RelativePositions`, which adds to the attention logits; or `None`.
        windows: Windows, in each of which tokens attend to themselves alone, a dictionary: `count`, their number a
            side; `grid`, `(rows, columns)` of the patches; `num_prefix`, the number of tokens before them, which stand
            there once for each window. `None` for none. Not with `rotary` or `relative`.
        inner_norm: Whether the joined output of all heads is normalized before the projection.
        rms_norm: Whether the normalizations are RMS normalizations; else layer normalizations.
        epsilon: Epsilon of the normalizations.
        dropout: Rate of the dropout after the output projection.
        attention_dropout: Rate of the dropout on the attention scores.

    Call arguments:
        x: Tensor of tokens.
        attention_mask: Boolean tensor, `(batch, tokens, tokens)` or `(batch, heads or 1, tokens, tokens)`;
            `True` where the token of the row may attend to the token of the column.
        use_causal_mask: Whether a token attends only to itself and the tokens before it.
        return_attention_scores: Whether to return the attention scores (after the softmax, float32) too.
        training: Whether dropout is on.
        scores_offset: Tensor added to the attention scores after the softmax,
            `(batch, heads, tokens, tokens)`. Its gradient equals the gradient of the scores.
        bias: Tensor added to the attention logits, which broadcasts to `(batch, heads, tokens, tokens)`.
        return_keys: Whether to return the keys too, as the last output.

    Input shape:
        `(batch, tokens, width)`.

    Output shape:
        `(batch, tokens, width)`, with `return_attention_scores` also `(batch, heads, tokens, tokens)`, and with
        `return_keys` also `(batch, tokens, heads, head_dim)`.

    Raises:
        ValueError: If `num_heads` does not divide the width, or a rate is outside [0, 1).

    Example:

    >>> MultiHeadSelfAttention(num_heads=3)(keras.ops.zeros((2, 50, 192))).shape
    (2, 50, 192)
    """

    takes_blocks = True  # whether attention to many tokens is computed in blocks

    def __init__(
        self,
        num_heads: Positive,
        *,
        qkv_bias: Switch = True,
        key_bias: Switch = True,
        proj_bias: Switch = True,
        qk_norm: Switch = False,
        rotary: dict | None = None,
        relative: dict | None = None,
        windows: dict | None = None,
        inner_norm: Switch = False,
        rms_norm: Switch = False,
        epsilon: AboveZero = 1e-6,
        dropout: Rate = 0.0,
        attention_dropout: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.options("rotary", {} if rotary is None else rotary, ("grid", "num_prefix", *OPTIONS))
        checks.options("relative", {} if relative is None else relative, ("grid", "num_prefix"))
        windowed.check(windows, rotary=rotary, relative=relative)
        self.qkv_bias = qkv_bias
        self.key_bias = key_bias
        self.proj_bias = proj_bias
        self.num_heads = num_heads
        self.rotary = rotary
        self.relative = relative
        self.windows = windows
        self.qk_norm = qk_norm
        self.inner_norm = inner_norm
        self.rms_norm = rms_norm
        self.epsilon = epsilon
        self.dropout = dropout
        self.attention_dropout = attention_dropout

    def build(self, input_shape):
        if len(input_shape) != 3:
            raise ValueError(f"The input must be (batch, tokens, width). Received: input_shape={tuple(input_shape)}")
        width = input_shape[-1]
        if width % self.num_heads:
            raise ValueError(f"A width of {width} cannot be split into {self.num_heads} heads: it must divide evenly.")
        self.head_dim = width // self.num_heads
        self.scale = self.head_dim**-0.5
        # Glorot's limit for each of the three (width, width) parts: sqrt(6 / 2D) = sqrt(3 * 2 / ((D + 3D) / 2)).
        glorot_of_parts = keras.initializers.VarianceScaling(2.0, mode="fan_avg", distribution="uniform")
        policy, bias = self.dtype_policy, self.qkv_bias and self.key_bias
        self.qkv = Dense(3 * width, use_bias=bias, kernel_initializer=glorot_of_parts, name="qkv", dtype=policy)
        self.qkv.build(input_shape)
        if self.qkv_bias and not self.key_bias:
            self.qv_bias = self.add_weight(name="qv_bias", shape=(2 * width,), initializer="zeros")
        norms = {"rms_norm": self.rms_norm, "epsilon": self.epsilon, "dtype": policy}
        if self.inner_norm:
            self.norm = norm("norm", **norms)
            self.norm.build(input_shape)
        self.proj = Dense(width, use_bias=self.proj_bias, name="proj", dtype=policy)
        self.proj.build(input_shape)
        heads_shape = (*tuple(input_shape)[:2], self.num_heads, self.head_dim)
        if self.rotary is not None:
            self.rotate = RotaryPositions(**self.rotary, name="rotate", dtype=policy)
            self.rotate.build(heads_shape)
        if self.relative is not None:
            self.distances = RelativePositions(**self.relative, name="distances", dtype=policy)
            self.distances.build((None, self.num_heads, *(input_shape[1],) * 2))
        if self.qk_norm:
            self.q_norm = norm("q_norm", **norms)
            self.k_norm = norm("k_norm", **norms)
            self.q_norm.build(heads_shape)
            self.k_norm.build(heads_shape)
        self.drop = keras.layers.Dropout(self.dropout, name="drop", dtype=policy)
        self.attention_drop = keras.layers.Dropout(self.attention_dropout, name="attention_drop", dtype=policy)

    def call(
        self,
        x,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        scores_offset=None,
        bias=None,
        return_keys=False,
    ):
        seen, drops = return_attention_scores or scores_offset is not None, training and self.attention_dropout > 0
        of_images = seen or return_keys or use_causal_mask or bias is not None or attention_mask is not None
        in_windows = self.windows is not None and not of_images
        x = windowed.cut(x, **self.windows) if in_windows else x
        tokens, width = ops.shape(x)[1], x.shape[-1]
        qkv = self.qkv(ops.reshape(x, (-1, width)))  # (batch * tokens, 3 * width)
        if self.qkv_bias and not self.key_bias:
            of_query, of_value = ops.split(ops.cast(self.qv_bias, qkv.dtype), 2)
            qkv = qkv + ops.concatenate([of_query, ops.zeros_like(of_query), of_value])
        query, key, value = (
            ops.reshape(part, (-1, tokens, self.num_heads, self.head_dim))  # (batch, tokens, heads, head_dim)
            for part in ops.split(qkv, 3, axis=-1)
        )
        if self.qk_norm:
            query, key = self.q_norm(query), self.k_norm(key)
        if self.rotary is not None:
            query, key = self.rotate(query), self.rotate(key)
        if self.windows is not None and of_images:
            attention_mask = windowed.within(attention_mask, **self.windows)
        mask = joined_mask(attention_mask, use_causal_mask, tokens, tokens)
        in_blocks = not seen and self.takes_blocks and suits(query, bias, mask)
        if self.relative is not None and not in_blocks:
            bias = self.distances.bias() if bias is None else self.distances.bias() + bias
        if in_blocks:
            dropout = (self.attention_dropout, self.attention_drop.seed_generator) if drops else None
            x = blockwise_attention(query * self.scale, key, value, self._terms(bias, mask), dropout)
        elif seen or drops:
            scores = self._scores(query, key, bias, mask, scores_offset)  # (batch, heads, tokens, tokens)
            x = weighted(self.attention_drop(ops.cast(scores, value.dtype), training=training), value)
        elif mask is None and bias is None and self.uses_attend(training):
            x = attend(query, key, value, self.scale)
        else:
            bias = bias if bias is None else ops.cast(bias, query.dtype)
            x = fused_attention(query * self.scale, key, value, bias, mask, training)
        x = ops.reshape(x, (-1, tokens, width))  # (batch, tokens, width)
        x = tokenwise(self.norm, x) if self.inner_norm else x
        x = self.drop(tokenwise(self.proj, x), training=training)
        x = windowed.joined(x, **self.windows) if in_windows else x
        more = ([scores] if return_attention_scores else []) + ([key] if return_keys else [])
        return (x, *more) if more else x

    def _terms(self, bias, mask):
        relative = [] if self.relative is None else [terms.Relative(self.distances.table, self.distances.index)]
        biases = [] if bias is None else [terms.Bias(bias)]
        return relative + biases + ([] if mask is None else [terms.Mask(mask)])

    def uses_attend(self, training):
        """Returns whether `attend` computes attention without mask and bias; not in float16, where it overflows."""
        possible = keras.backend.backend() == "tensorflow" and self.compute_dtype != "float16"
        return possible and (training or self.head_dim < NARROW)

    def _scores(self, query, key, bias, mask, offset):
        scores = attention_scores(query * self.scale, key, bias, mask)
        return scores if offset is None else scores + ops.cast(offset, "float32")
