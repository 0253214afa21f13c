import keras
import numpy as np
import pytest

from keras_vit import MultiHeadSelfAttention
from tests.harness import run_layer_test
from tests.marks import few, first_everywhere

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
TOKENS = RNG.normal(size=(2, 5, 12)).astype("float32")
MASK = RNG.random((2, 5, 5)) < 0.7
MASK |= np.eye(5, dtype=bool)


@few(1)
@pytest.mark.parametrize(
    "options", [dict(qkv_bias=False, qk_norm=True), dict(inner_norm=True), dict(dropout=0.1, attention_dropout=0.1)]
)
def test_layer(options, tmp_path):
    run_layer_test(
        lambda dtype: MultiHeadSelfAttention(3, **options, dtype=dtype),
        TOKENS.shape,
        TOKENS.shape,
        ["qkv", "proj"],
        tmp_path,
    )


def pair():
    """Our layer and Keras's with the same weights."""
    ours, theirs = MultiHeadSelfAttention(3), keras.layers.MultiHeadAttention(3, 4)
    ours.build(TOKENS.shape)
    theirs.build(TOKENS.shape, TOKENS.shape)
    for weight in theirs.weights:
        weight.assign(0.5 * RNG.normal(size=weight.shape))
    kernels = [w.numpy() if hasattr(w, "numpy") else np.asarray(w) for w in theirs.weights]
    (q, qb, k, kb, v, vb, out, out_b) = kernels
    ours.qkv.kernel.assign(np.concatenate([w.reshape(12, 12) for w in (q, k, v)], axis=1))
    ours.qkv.bias.assign(np.concatenate([b.reshape(12) for b in (qb, kb, vb)]))
    ours.proj.kernel.assign(out.reshape(12, 12))
    ours.proj.bias.assign(out_b)
    return ours, theirs


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
    ours, theirs = pair()
    expected, expected_scores = theirs(TOKENS, TOKENS, return_attention_scores=True, **call)
    found, scores = ours(TOKENS, return_attention_scores=True, **call)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=2e-5)
    np.testing.assert_allclose(np.asarray(scores), np.asarray(expected_scores), atol=2e-6)
    np.testing.assert_allclose(np.asarray(ours(TOKENS, **call)), np.asarray(expected), atol=2e-5)  # the fused path


def test_inner_norm_is_before_the_projection():
    layer, plain = MultiHeadSelfAttention(3, inner_norm=True, epsilon=1e-3), MultiHeadSelfAttention(3)
    for each in (layer, plain):
        each.build(TOKENS.shape)
    plain.qkv.set_weights(layer.qkv.get_weights())
    plain.proj.set_weights([np.eye(12), np.zeros(12)])
    layer.norm.set_weights([np.arange(12) / 6, np.ones(12)])
    expected = layer.proj(layer.norm(plain(TOKENS)))
    np.testing.assert_allclose(np.asarray(layer(TOKENS)), np.asarray(expected), atol=1e-5)


def test_softmax_is_float32_under_mixed_precision():
    layer = MultiHeadSelfAttention(3, dtype="mixed_float16")
    tokens, scores = layer(TOKENS, return_attention_scores=True)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    np.testing.assert_allclose(np.asarray(scores).sum(-1), 1, atol=1e-6)
    assert keras.backend.standardize_dtype(tokens.dtype) == "float16"


@pytest.mark.parametrize("heads", [3, 1])  # narrow heads, and whole
@pytest.mark.parametrize("relative", [None, {"grid": (1, 5)}])
def test_bias_is_added_to_the_logits(heads, relative):
    layer, plain = (MultiHeadSelfAttention(heads, relative=relative) for _ in range(2))
    tokens = np.tile(TOKENS, (1, 1, 4))  # heads of 16 and 48
    bias = RNG.normal(size=(2, 1, 1, 5)).astype("float32")
    layer(tokens), plain(tokens)
    plain.set_weights(layer.get_weights())
    _, logits = plain(tokens, return_attention_scores=True)
    weights = np.asarray(logits) * np.exp(bias)
    weights /= weights.sum(-1, keepdims=True)
    mixed, scores, keys = layer(tokens, bias=bias, return_attention_scores=True, return_keys=True)
    np.testing.assert_allclose(np.asarray(scores), weights, atol=1e-5)
    for training in (False, True):
        np.testing.assert_allclose(
            np.asarray(layer(tokens, bias=bias, training=training)), np.asarray(mixed), atol=1e-5
        )
    expected = np.asarray(layer.qkv(tokens))[..., 48:96].reshape(2, 5, heads, -1)
    np.testing.assert_allclose(np.asarray(keys), expected, atol=1e-6)


def test_offset_is_added_to_the_scores():
    layer, bias = MultiHeadSelfAttention(3), RNG.normal(size=(2, 3, 5, 5)).astype("float32")
    plain, scores = layer(TOKENS, return_attention_scores=True)
    biased, sums = layer(TOKENS, return_attention_scores=True, scores_offset=bias)
    np.testing.assert_allclose(np.asarray(sums), np.asarray(scores) + bias, atol=1e-6)
    values = np.asarray(layer.qkv(TOKENS))[..., 24:].reshape(2, 5, 3, 4)
    added = np.einsum("bhts,bshd->bthd", bias, values).reshape(2, 5, 12) @ np.asarray(layer.proj.kernel)
    np.testing.assert_allclose(np.asarray(biased), np.asarray(plain) + added, atol=1e-5)
    np.testing.assert_allclose(np.asarray(layer(TOKENS, scores_offset=bias)), np.asarray(biased), atol=1e-6)


def test_symbolic_tokens_scores_masks_and_biases():
    x, mask, bias = keras.KerasTensor((None, 5, 12)), keras.KerasTensor((None, 5, 5), "bool"), (None, 3, 5, 5)
    tokens, scores = MultiHeadSelfAttention(3)(
        x, mask, scores_offset=keras.KerasTensor(bias), return_attention_scores=True
    )
    assert tokens.shape == (None, 5, 12) and scores.shape == bias
    assert MultiHeadSelfAttention(3)(x, mask).shape == (None, 5, 12)
    _, keys = MultiHeadSelfAttention(3)(x, bias=keras.KerasTensor((None, 1, 1, 5)), return_keys=True)
    assert keys.shape == (None, 5, 3, 4)


@pytest.mark.parametrize("dtype", first_everywhere("float32", "mixed_float16"))
def test_a_query_that_may_see_nothing_sees_all_alike_with_scores_and_without(dtype):
    """As PyTorch's issues 160064 and 41508 ask: a mask of a whole row or head gave NaN, there with scores alone."""
    x, mask = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32"), np.ones((2, 2, 5, 5), bool)
    mask[0, :, 2], mask[1, 1] = False, False
    layer = MultiHeadSelfAttention(2, dtype=dtype)
    alone = keras.ops.convert_to_numpy(layer(x, attention_mask=mask))
    seen, scores = (keras.ops.convert_to_numpy(y) for y in layer(x, attention_mask=mask, return_attention_scores=True))
    np.testing.assert_allclose(alone, seen, atol=1e-6 if dtype == "float32" else 1e-3)
    np.testing.assert_allclose(scores[~mask.any(-1)], 1 / 5, atol=1e-6)


def test_attention_dropout_only_in_training():
    layer = MultiHeadSelfAttention(3, attention_dropout=0.5)
    layer(TOKENS)
    still = [np.asarray(layer(TOKENS, training=False)) for _ in range(2)]
    moved = [np.asarray(layer(TOKENS, training=True)) for _ in range(2)]
    np.testing.assert_array_equal(*still)
    assert np.abs(moved[0] - moved[1]).max() > 1e-3


def test_heads_that_do_not_divide_the_width_are_named():
    with pytest.raises(ValueError, match="width of 12 cannot be split into 5 heads"):
        MultiHeadSelfAttention(5)(TOKENS)
