import keras
import pytest

from keras_vit.layers.attention.with_scores import WithScores

pytestmark = pytest.mark.backend


class Layer(WithScores, keras.layers.Layer):
    num_heads = 3

    def call(self, x, **kwargs):
        raise AssertionError("symbolic tensors need no computation")


def test_shapes_with_and_without_scores():
    tokens = keras.KerasTensor((None, 5, 12))
    assert Layer()(tokens).shape == (None, 5, 12) == Layer().compute_output_shape((None, 5, 12))
    layer = Layer(dtype="mixed_bfloat16")
    outputs, scores = layer(tokens, return_attention_scores=True)
    assert (outputs.shape, outputs.dtype) == ((None, 5, 12), "bfloat16")
    assert (scores.shape, scores.dtype) == ((None, 3, 5, 5), "float32")
