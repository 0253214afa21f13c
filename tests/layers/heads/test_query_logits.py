import keras
import numpy as np
import pytest

from keras_vit.layers import QueryLogits

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
PATCHES = RNG.normal(size=(2, 5, 8)).astype("float32")
QUERIES = RNG.normal(size=(3, 4)).astype("float32")
IDS = np.array([[7, 1], [0, 0], [5, 0]], "int32")


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def wanted(layer, queries):
    dense = lambda part: PATCHES @ np.asarray(part.kernel) + np.asarray(part.bias)  # noqa: E731
    scale = dense(layer.logit_scale)
    cosines = unit(dense(layer.dense0)) @ unit(queries).T
    return (cosines + dense(layer.logit_shift)) * (np.where(scale > 0, scale, np.expm1(scale)) + 1)


def test_a_logit_is_a_cosine_shifted_then_scaled_and_an_empty_text_has_none():
    layer = QueryLogits(4)
    found = np.asarray(layer([PATCHES, QUERIES, IDS]))
    np.testing.assert_allclose(found[..., ::2], wanted(layer, QUERIES)[..., ::2], atol=1e-5)
    assert (found[..., 1] == np.finfo("float32").min).all()
    np.testing.assert_allclose(found, np.asarray(layer([PATCHES, 9 * QUERIES, IDS])), atol=1e-4)


def test_queries_may_be_a_weight(tmp_path):
    layer = QueryLogits(4, queries=3, name="logits")
    model = keras.Sequential([keras.Input((5, 8)), layer])
    kept = next(weight for weight in layer.weights if weight.name == "queries")
    assert tuple(kept.shape) == (4, 3) and model.output_shape == (None, 5, 3)
    kept.assign(QUERIES.T)
    np.testing.assert_allclose(np.asarray(model(PATCHES)), wanted(layer, QUERIES), atol=1e-5)
    model.save(tmp_path / "logits.keras")
    again = keras.models.load_model(tmp_path / "logits.keras")
    np.testing.assert_array_equal(np.asarray(again(PATCHES)), np.asarray(model(PATCHES)))


def test_logits_and_cosines_are_float32_under_every_policy():
    layer = QueryLogits(4, dtype="mixed_bfloat16")
    found = layer([PATCHES, QUERIES, IDS])
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    np.testing.assert_allclose(np.asarray(found)[..., ::2], wanted(layer, QUERIES)[..., ::2], atol=0.1)
    inputs = [keras.Input((5, 8)), keras.Input((4,)), keras.Input((2,), dtype="int32")]
    assert layer(inputs).dtype == "float32" and layer(inputs).shape == (None, 5, None)


def test_vectors_of_zeros_have_finite_gradients():
    model = keras.Sequential([keras.Input((5, 8)), QueryLogits(4, queries=3)])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.train_on_batch(np.zeros((2, 5, 8), "float32"), np.ones((2, 5, 3), "float32"))
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_bad_input():
    with pytest.raises(ValueError, match="Queries must have 4 channels. Received: 3"):
        QueryLogits(4)([PATCHES, QUERIES[:, :3], IDS])
    with pytest.raises(ValueError, match="Received: units=0"):
        QueryLogits(0)
