import keras
import numpy as np
import pytest

from keras_vit.layers import Similarity
from keras_vit.layers.heads.similarity import unit
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES, TEXTS = (RNG.normal(size=(n, 8)).astype("float32") for n in (3, 5))


@pytest.mark.parametrize("bias", [None, -1.0])
def test_layer(bias, tmp_path):
    def make(dtype):
        return Similarity(0.5, bias, dtype=dtype)

    run_layer_test(make, [(3, 8), (5, 8)], (3, 5), tmp_path=tmp_path, unknown=(None, None))


@pytest.mark.parametrize("bias, channels", [(None, 8), (-1.0, 9)])
def test_rows_of_pairs_have_the_logits_as_products(bias, channels, tmp_path):
    def make(dtype):
        return Similarity(0.5, bias, pairs=True, dtype=dtype)

    run_layer_test(make, [(3, 8), (3, 8)], (3, 2, channels), tmp_path=tmp_path)
    rows = np.asarray(make("float32")([IMAGES, TEXTS[:3]]))
    logits = np.asarray(Similarity(0.5, bias)([IMAGES, TEXTS[:3]]))
    np.testing.assert_allclose(rows[:, 0] @ rows[:, 1].T, logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale, bias", [(0.0, None), (2.0, -10.0)])
def test_is_the_scaled_cosine(scale, bias):
    layer = Similarity(scale, bias)
    found = np.asarray(layer([IMAGES, TEXTS]))
    lengths = np.linalg.norm(IMAGES, axis=1)[:, None] * np.linalg.norm(TEXTS, axis=1)
    np.testing.assert_allclose(found, np.exp(scale) * (IMAGES @ TEXTS.T) / lengths + (bias or 0), rtol=1e-5, atol=1e-5)
    assert [weight.path.rpartition("/")[2] for weight in layer.weights] == ["logit_scale", "logit_bias"][
        : 1 + bool(bias)
    ]


def test_vectors_of_zeros_and_of_two_widths():
    np.testing.assert_array_equal(np.asarray(unit(keras.ops.zeros((2, 8)))), 0)
    with pytest.raises(ValueError, match=r"matrices of one width. Received: shapes \(3, 8\) and \(5, 7\)"):
        Similarity()([IMAGES, TEXTS[:, :7]])
    with pytest.raises(ValueError, match="`scale` must be a finite number. Received: scale=inf"):
        Similarity(np.inf)
