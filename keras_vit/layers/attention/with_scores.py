"""Shapes of a layer that returns attention scores if asked to."""

import keras


class WithScores:
    """Part of a layer with `num_heads` that maps tokens to as many, and may return `(tokens, scores)`."""

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
        (batch, tokens, width), heads = x.shape, self.num_heads
        outputs = [keras.KerasTensor(x.shape, dtype=self.compute_dtype)]
        if return_attention_scores:
            outputs.append(keras.KerasTensor((batch, heads, tokens, tokens), dtype="float32"))
        if return_keys:
            outputs.append(keras.KerasTensor((batch, tokens, heads, width // heads), dtype=self.compute_dtype))
        return tuple(outputs) if len(outputs) > 1 else outputs[0]
