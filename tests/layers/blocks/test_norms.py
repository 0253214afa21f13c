import keras
import numpy as np
import pytest

from keras_vit.layers.blocks.norms import norm

pytestmark = pytest.mark.backend


@pytest.mark.parametrize("rms_norm", [False, True])
def test_formula(rms_norm):
    x = np.random.default_rng(0).normal(1.0, 2.0, size=(3, 8)).astype("float32")
    layer = norm("norm1", rms_norm=rms_norm, epsilon=0.1, dtype="float32")
    centered = x if rms_norm else x - x.mean(-1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(np.asarray(layer(x)), expected, atol=1e-5)
    assert layer.name == "norm1" and len(layer.weights) == 2 - rms_norm


@pytest.mark.parametrize("rms_norm", [False, True])
def test_squares_of_half_precision_stay_finite(rms_norm):
    layer = norm("norm", rms_norm=rms_norm, epsilon=1e-6, dtype=keras.DTypePolicy("mixed_float16"))
    x = np.array([[300.0, -300.0, 300.0, -300.0]], "float16")  # the square is beyond float16
    np.testing.assert_allclose(np.asarray(layer(x), "float32"), np.sign(x), atol=1e-2)
