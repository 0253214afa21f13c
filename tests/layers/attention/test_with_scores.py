import keras
import pytest

from keras_vit import CrossAttention, DecoderBlock, MultiHeadSelfAttention, TransformerBlock
from keras_vit.layers.attention.with_scores import WithCrossScores, WithScores

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


class Cross(WithCrossScores, keras.layers.Layer):
    num_heads = 3
    context_width = 9

    def call(self, x, context=None, attention_mask=None, return_attention_scores=False):
        raise AssertionError("symbolic tensors need no computation")


def test_shapes_of_scores_to_a_context():
    tokens, context, layer = keras.KerasTensor((None, 5, 12)), keras.KerasTensor((None, 7, 9)), Cross(dtype="float16")
    mask = keras.KerasTensor((1, 5, 7), dtype="bool")
    assert layer(tokens).shape == layer(tokens, context, mask).shape == (None, 5, 12)
    assert layer.compute_output_shape((2, 5, 12), (2, 7, 9)) == (2, 5, 12)
    outputs, scores = layer(tokens, context, attention_mask=mask, return_attention_scores=True)
    assert (outputs.shape, outputs.dtype) == ((None, 5, 12), "float16")
    assert (scores.shape, scores.dtype) == ((None, 3, 5, 7), "float32")
    assert [one.shape for one in layer(tokens, return_attention_scores=True)] == [(None, 5, 12)]
    with pytest.raises(ValueError, match="was built with, 9. Received: 12"):
        layer(tokens, tokens)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: MultiHeadSelfAttention(4)(x, x),
        lambda x: MultiHeadSelfAttention(4)(x, x, x),
        lambda x: MultiHeadSelfAttention(4)(x, attention_mask=keras.Input((5,), dtype="bool")),
        lambda x: TransformerBlock(4, 8)(x, x),
        lambda x: CrossAttention(4)(x, x, x),
        lambda x: DecoderBlock(4, 8)(x, x, x),
    ],
)
def test_tokens_in_place_of_a_mask_are_refused_when_the_model_is_put_together(make):
    with pytest.raises(ValueError, match=r"`attention_mask` must be boolean.*If these are tokens: self-attention"):
        make(keras.Input((5, 8)))
