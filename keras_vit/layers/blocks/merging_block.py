"""A block that merges similar tokens, and the layer that undoes merging."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.token_matching import kinds, match, merge, moved, places, sizes_of, whole
from keras_vit.layers.blocks.transformer_block import TransformerBlock
from keras_vit.layers.inputs.prefix import WithPrefix, prefix_of
from keras_vit.utils.typed import Whole


@keras.saving.register_keras_serializable(package="keras_vit")
class MergingBlock(WithPrefix, TransformerBlock):
    """A `TransformerBlock` that merges its most similar tokens between attention and MLP.

    Token merging, Bolya et al. 2023 (arXiv:2210.09461), section 3. Attention is proportional: the logarithm of the
    number of patches in a token is added to the logits of attention to it. Merged tokens are means over their patches.

    Args:
        merged: Number of tokens to merge, at most half of the patch tokens; 0 for proportional attention only.
        num_prefix: Number of tokens before the first patch, which are not merged; `None` to infer it from the layers
            before, in a functional model with a `PatchEncoder`.
        kwargs: Arguments of `TransformerBlock`, without `rotary` and `relative`, as a merged token has no position, and
            without `parallel`.

    Call arguments:
        x: Tensor of tokens.
        sources: Integer tensor, `(batch, prefix + patches, 1)`: for each token of the first block, the index of the
            token that it is part of now. `None` if no token was merged before.
        return_attention_scores: As in `MultiHeadSelfAttention`.
        training: Whether dropout and stochastic depth are on.
        scores_offset: As in `MultiHeadSelfAttention`.

    Input shape:
        `(batch, tokens, width)`.

    Output shape:
        `(batch, tokens - merged, width)` and int32 `sources`, `(batch, prefix + patches, 1)`. With
        `return_attention_scores` also
        `(batch, heads, tokens, tokens)`.

    Raises:
        ValueError: For an argument outside its range, or positions in attention; in the call, if the number of prefix
            tokens is not known.

    Example:

    >>> x, sources = MergingBlock(2, 48, merged=4, num_prefix=1)(keras.ops.zeros((2, 17, 24)))
    >>> x.shape, sources.shape
    ((2, 13, 24), (2, 17, 1))
    """

    def __init__(self, num_heads: int, mlp_dim: int, *, merged: Whole, num_prefix: int | None = None, **kwargs):
        super().__init__(num_heads, mlp_dim, **kwargs)
        self.check_prefix(num_prefix)
        if self.rotary is not None or self.relative is not None:
            raise ValueError(
                "Merged tokens have no position, which attention needs here. "
                f"Received: rotary={self.rotary!r}, relative={self.relative!r}"
            )
        if self.parallel:  # tokens are merged between attention and MLP
            raise ValueError("Tokens cannot be merged in a parallel block. Received: parallel=True")
        self.merged = merged
        self.num_prefix = num_prefix

    def prefix_found(self, x):
        """Returns the number of prefix tokens in symbolic tokens, `(batch, tokens, width)`."""
        prefix = prefix_of(x) if keras.utils.is_keras_tensor(x) else None
        return super().prefix_found(x) if self.merged else prefix or 0  # later layers may need it

    def call(self, x, sources=None, return_attention_scores=False, training=None, scores_offset=None):
        tokens = x.shape[1]
        if sources is None:
            nothing = ops.zeros((ops.shape(x)[0], tokens, 1), dtype="int32")
            sources = nothing + ops.expand_dims(ops.arange(tokens, dtype="int32"), 1)
            sizes, bias = 1.0 + ops.cast(nothing, "float32"), None
        else:
            sizes = sizes_of(sources, tokens)  # (batch, tokens, 1)
            bias = ops.reshape(ops.log(sizes), (-1, 1, 1, tokens))
        y, *scores, keys = self.attention(
            self.normed("pre", self.norm1, x, training),
            return_attention_scores=return_attention_scores,
            training=training,
            scores_offset=scores_offset,
            bias=bias,
            return_keys=True,
        )
        y = self.scale1(self.normed("res-post", self.norm1, y, training))
        x = self.normed("post", self.norm1, x + self.path1(y, training=training), training)
        count = self.count(tokens)
        if count:
            place = match(ops.mean(keys, axis=2), count, self.num_prefix)
            x = merge(x, sizes, place, count, self.num_prefix)
            every = places(place, count, tokens, self.num_prefix)
            sources = ops.cast(moved(every, sources) + 0.5, "int32")
        y = self.mlp(self.normed("pre", self.norm2, x, training), training=training)
        y = self.scale2(self.normed("res-post", self.norm2, y, training))
        x = self.normed("post", self.norm2, x + self.path2(y, training=training), training)
        return x, sources, *scores

    def count(self, tokens):
        """Returns the number of tokens to merge, of this number of tokens: at most half of the patch tokens."""
        return min(self.merged, (tokens - self.num_prefix) // 2)

    def merging_macs(self, tokens, width):
        """Returns the multiply-adds of merging, minus those that the MLP saves on merged tokens."""
        count = self.count(tokens)
        first, second = (len(part[0]) for part in kinds(np.zeros((1, tokens)), self.num_prefix)[1:])
        matching, means = first * second * width // self.num_heads, first * (first - count + second) * width
        kernels = sum(math.prod(weight.shape) for weight in self.mlp.weights if len(weight.shape) == 2)
        return (count > 0) * (matching + means) - count * kernels

    def compute_output_spec(self, x, sources=None, return_attention_scores=False, training=None, scores_offset=None):
        batch, tokens, width = x.shape
        every = tokens if sources is None else sources.shape[1]
        outputs = (
            keras.KerasTensor((batch, tokens - self.count(tokens), width), dtype=self.compute_dtype),
            keras.KerasTensor((batch, every, 1), dtype="int32"),
        )
        scores = keras.KerasTensor((batch, self.num_heads, tokens, tokens), dtype="float32")
        return (*outputs, scores) if return_attention_scores else outputs

    def compute_output_shape(self, input_shape, sources_shape=None):
        batch, tokens, width = input_shape
        return (batch, tokens - self.count(tokens), width), (batch, (sources_shape or input_shape)[1], 1)


@keras.saving.register_keras_serializable(package="keras_vit")
class Unmerge(Layer):
    """Undoes token merging: copies each merged token to all of its patches.

    Call arguments:
        x: Tensor of tokens, the first output of a `MergingBlock`.
        sources: Integer tensor, the second output of that block.

    Input shape:
        `(batch, tokens, width)` and `(batch, prefix + patches, 1)`.

    Output shape:
        `(batch, prefix + patches, width)`.

    Example:

    >>> Unmerge()(keras.ops.ones((2, 13, 24)), keras.ops.zeros((2, 17, 1), "int32")).shape
    (2, 17, 24)
    """

    def call(self, x, sources):
        return whole(x, sources)

    def compute_output_shape(self, x_shape, sources_shape):
        return (*sources_shape[:2], x_shape[-1])
