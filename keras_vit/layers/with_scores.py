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
    ):
        output = keras.KerasTensor(x.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        batch, tokens, _ = x.shape
        return output, keras.KerasTensor((batch, self.num_heads, tokens, tokens), dtype="float32")
