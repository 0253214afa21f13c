import keras
import numpy as np
import pytest

from keras_vit.layers import TimeSteps
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_harness(tmp_path):
    run_layer_test(lambda dtype: TimeSteps(3, dtype=dtype), (6, 8), (2, 4, 8), tmp_path=tmp_path, unknown=(None, 4, 8))


def test_steps_of_a_clip_are_a_row_after_the_class_token():
    layer, x = TimeSteps(3), np.random.default_rng(0).normal(size=(6, 8)).astype("float32")
    layer.build(x.shape)
    layer.class_token.assign(np.full((1, 1, 8), 7.0))
    table = keras.ops.convert_to_numpy(layer.table)
    found = keras.ops.convert_to_numpy(layer(x)) - table
    np.testing.assert_allclose(found[:, 0], 7, atol=1e-6)
    np.testing.assert_allclose(found[:, 1:], x.reshape(2, 3, 8), atol=1e-6)
    assert table.std() > 0.01 and sorted(w.path.split("/")[-1] for w in layer.weights) == ["class_token", "table"]


def test_bad_arguments():
    with pytest.raises(ValueError, match="`steps` must be a positive integer. Received: steps=0"):
        TimeSteps(0)
