import keras
import numpy as np
import pytest

from keras_vit.layers import TimeEmbedding
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

TIMES = np.float32([0.0, 0.3, 0.999])


def test_layer(tmp_path):
    make = lambda dtype: TimeEmbedding(8, channels=6, dtype=dtype)  # noqa: E731
    run_layer_test(make, (3,), (3, 8), ("fc1", "fc2"), tmp_path)


@pytest.mark.parametrize("closed, last", [(False, 10000 ** -(3 / 4)), (True, 1e-4)])
def test_waves_from_1_to_the_lowest_frequency(closed, last):
    layer = TimeEmbedding(8, channels=8, scale=1000.0, closed=closed)
    layer(TIMES)
    np.testing.assert_allclose([layer.frequencies[0], layer.frequencies[-1]], [1, last], rtol=1e-6)
    angles = 1000.0 * TIMES[:, None].astype("float64") * layer.frequencies
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    hidden = waves @ np.asarray(layer.fc1.kernel)
    expected = hidden / (1 + np.exp(-hidden)) @ np.asarray(layer.fc2.kernel)
    np.testing.assert_allclose(np.asarray(layer(TIMES)), expected, atol=1e-3)


def test_near_times_differ_under_any_precision():
    """bfloat16 has no numbers between 996 and 1,000: angles are computed before they are cast."""
    layer = TimeEmbedding(8, dtype="mixed_bfloat16")
    one, other = np.asarray(keras.ops.cast(layer(np.float32([0.997, 0.998])), "float32"))
    assert np.abs(one - other).max() > 1e-2


def test_bad_arguments():
    with pytest.raises(ValueError, match="`channels` must be even, and 4 or more where `closed`. Received: channels=3"):
        TimeEmbedding(8, channels=3)
    with pytest.raises(ValueError, match="4 or more where `closed`. Received: channels=2, closed=True"):
        TimeEmbedding(8, channels=2, closed=True)
    with pytest.raises(ValueError, match="`scale` must be a finite number above 0. Received: scale=0"):
        TimeEmbedding(8, scale=0)
