import numpy as np
import pytest

from keras_vit import StochasticDepth
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_layer(tmp_path):
    run_layer_test(lambda dtype: StochasticDepth(0.2, dtype=dtype), (4, 3, 2), (4, 3, 2), tmp_path=tmp_path)


def test_whole_samples_drop_and_the_mean_stays():
    x = np.ones((4000, 3, 2), "float32")
    y = np.asarray(StochasticDepth(0.25, seed=1)(x, training=True))
    per_sample = y.reshape(4000, -1)
    assert set(np.round(np.unique(per_sample), 5)) == {0.0, np.float32(round(1 / 0.75, 5))}
    assert (per_sample.min(axis=1) == per_sample.max(axis=1)).all()
    assert abs(y.mean() - 1) < 0.03  # 4 standard errors: sqrt(0.25 / 0.75 / 4000) = 0.009


def test_nothing_drops_outside_training():
    x = np.ones((100, 2), "float32")
    np.testing.assert_array_equal(np.asarray(StochasticDepth(0.9)(x, training=False)), x)


@pytest.mark.parametrize("rate", [-0.1, 1.0, "0.1"])
def test_bad_rate_is_named(rate):
    with pytest.raises(ValueError, match="Received: rate="):
        StochasticDepth(rate)
