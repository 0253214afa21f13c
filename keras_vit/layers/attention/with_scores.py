"""Output shapes of layers that can return attention scores, without tracing the layer."""

import keras

from keras_vit.layers.attention.attend import check_mask


class WithScores:
    """Mixin for a layer with `num_heads` from tokens to as many tokens, which can return `(tokens, scores)`."""

    ndim = 3

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
        bias=None,
        return_keys=False,
    ):
        if attention_mask is not None:
            check_mask(attention_mask)
        (batch, tokens, width), heads = x.shape, self.num_heads
        outputs = [keras.KerasTensor(x.shape, dtype=self.compute_dtype)]
        if return_attention_scores:
            outputs.append(keras.KerasTensor((batch, heads, tokens, tokens), dtype="float32"))
        if return_keys:
            outputs.append(keras.KerasTensor((batch, tokens, heads, width // heads), dtype=self.compute_dtype))
        return tuple(outputs) if len(outputs) > 1 else outputs[0]


class WithCrossScores:
    """Mixin for a layer with `num_heads` from tokens and a context to tokens, which can return `(tokens, scores)`.

    `build` of the layer sets `context_width`, the channels of the context, or `None` without a context.
    """

    ndim = 3

    def compute_output_shape(self, x_shape, context_shape=None):
        return x_shape

    def compute_output_spec(
        self, x, context=None, attention_mask=None, *masks, return_attention_scores=False, **options
    ):
        if attention_mask is not None:
            check_mask(attention_mask)
        if context is not None and context.shape[-1] != self.context_width:
            raise ValueError(
                f"`context` must have the width that the layer was built with, {self.context_width}. "
                f"Received: {context.shape[-1]}"
            )
        outputs = keras.KerasTensor(x.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return outputs
        if context is None:
            return (outputs,)
        shape = (x.shape[0], self.num_heads, x.shape[1], context.shape[1])
        return outputs, keras.KerasTensor(shape, dtype="float32")
