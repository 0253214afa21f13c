import keras
import numpy as np
import pytest

from keras_vit import CrossAttention
from tests.harness import POLICIES

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
TOKENS, CONTEXT = RNG.normal(size=(2, 5, 12)).astype("float32"), RNG.normal(size=(2, 7, 8)).astype("float32")
MASK = RNG.random((2, 5, 7)) < 0.7
MASK[..., 0] = True


def shaken(**options):
    layer = CrossAttention(3, **options)
    layer.build(TOKENS.shape, CONTEXT.shape)
    for weight in layer.weights:
        weight.assign(0.5 * RNG.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize(
    "call",
    [
        dict(),
        dict(attention_mask=MASK),
        dict(use_causal_mask=True),
        dict(attention_mask=MASK, use_causal_mask=True),
        dict(attention_mask=MASK[:, None]),
    ],
)
def test_equals_keras(call):
    ours, theirs = shaken(), keras.layers.MultiHeadAttention(3, 4)
    theirs.build(TOKENS.shape, CONTEXT.shape)
    parts = (ours.query, ours.key, ours.value, ours.proj)
    for weight, value in zip(theirs.weights, (array for part in parts for array in part.get_weights())):
        weight.assign(value.reshape(weight.shape))
    expected, expected_scores = theirs(TOKENS, CONTEXT, return_attention_scores=True, **call)
    found, scores = ours(TOKENS, CONTEXT, return_attention_scores=True, **call)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=2e-5)
    np.testing.assert_allclose(np.asarray(scores), np.asarray(expected_scores), atol=2e-6)
    np.testing.assert_allclose(np.asarray(ours(TOKENS, CONTEXT, **call)), np.asarray(expected), atol=2e-5)


def test_positions_move_queries_and_keys_and_not_values():
    layer = shaken()
    positions, places = RNG.normal(size=(1, 5, 12)).astype("float32"), RNG.normal(size=(1, 7, 8)).astype("float32")
    _, scores = layer(TOKENS + positions, CONTEXT + places, return_attention_scores=True)
    values = np.asarray(layer.value(CONTEXT)).reshape(2, 7, 3, 4)
    expected = layer.proj(np.einsum("bhts,bshd->bthd", np.asarray(scores), values).reshape(2, 5, 12))
    found = layer(TOKENS, CONTEXT, positions=positions, context_positions=places)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=2e-5)


@pytest.mark.parametrize("policy", POLICIES)
def test_scores_are_float32_and_tokens_as_the_policy_says(policy):
    layer = CrossAttention(3, dtype=policy)
    tokens, scores = layer(TOKENS, CONTEXT, return_attention_scores=True)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    np.testing.assert_allclose(np.asarray(scores).sum(-1), 1, atol=1e-6)
    assert keras.backend.standardize_dtype(tokens.dtype) == layer.compute_dtype


def test_a_model_with_it_has_any_batch_and_is_saved(tmp_path):
    x, context = keras.Input(TOKENS.shape[1:]), keras.Input(CONTEXT.shape[1:])
    model = keras.Model([x, context], CrossAttention(3, qkv_bias=False, dropout=0.1)(x, context))
    assert model.output_shape == (None, 5, 12)
    model.save(tmp_path / "layer.keras")
    loaded = keras.models.load_model(tmp_path / "layer.keras")
    found, expected = (np.asarray(each([TOKENS, CONTEXT])) for each in (loaded, model))
    np.testing.assert_array_equal(found, expected)
    assert not any(variable.path.endswith("bias") for variable in loaded.weights if "proj" not in variable.path)


def test_dropout_of_scores_is_only_in_training():
    layer = shaken(attention_dropout=0.5)
    still = [np.asarray(layer(TOKENS, CONTEXT, training=False)) for _ in range(2)]
    moved = [np.asarray(layer(TOKENS, CONTEXT, training=True)) for _ in range(2)]
    np.testing.assert_array_equal(*still)
    assert np.abs(moved[0] - moved[1]).max() > 1e-3


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match="width of 12 cannot be split into 5 heads"):
        CrossAttention(5)(TOKENS, CONTEXT)
    with pytest.raises(ValueError, match=r"`context` must be .* Received: shape \(7, 8\)"):
        CrossAttention(3)(TOKENS, CONTEXT[0])
