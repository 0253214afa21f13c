import numpy as np
import pytest

from keras_vit import LayerScale
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_layer(tmp_path):
    run_layer_test(lambda dtype: LayerScale(0.1, dtype=dtype), (2, 5, 8), (2, 5, 8), tmp_path=tmp_path)


def test_scales_each_channel():
    layer = LayerScale(1e-4)
    x = np.ones((2, 3, 4), "float32")
    np.testing.assert_allclose(np.asarray(layer(x)), 1e-4 * x, rtol=1e-6)
    layer.gamma.assign([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(np.asarray(layer(x))[1, 2], [1, 2, 3, 4])
