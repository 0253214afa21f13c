import keras
import numpy as np
import pytest

from keras_vit import Patches
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


@pytest.mark.parametrize("size, channels, shape", [(4, 3, (2, 6, 48)), ((2, 3), 1, (2, 16, 6))])
def test_layer(size, channels, shape, tmp_path):
    run_layer_test(lambda dtype: Patches(size, dtype=dtype), (2, 8, 12, channels), shape, tmp_path=tmp_path)


def test_order_is_row_major_with_channels_last():
    images = np.arange(2 * 4 * 6 * 3, dtype="float32").reshape(2, 4, 6, 3)
    patches = np.asarray(Patches((2, 3))(images))
    for row in range(2):
        for column in range(2):
            expected = images[:, 2 * row : 2 * row + 2, 3 * column : 3 * column + 3].reshape(2, -1)
            np.testing.assert_array_equal(patches[:, 2 * row + column], expected)


def test_size_that_does_not_divide_names_both():
    with pytest.raises(ValueError, match="30 x 28.*4 x 4"):
        Patches(4)(np.zeros((1, 30, 28, 1), "float32"))


@pytest.mark.parametrize("size", [0, -1, 2.5, (1, 2, 3), "4", True])
def test_bad_size_is_named(size):
    with pytest.raises(ValueError, match="Received: patch_size="):
        Patches(size)


def test_wrong_rank_is_named():
    with pytest.raises(ValueError, match=r"\(2, 28, 28\)"):
        Patches(4)(np.zeros((2, 28, 28), "float32"))


def test_channels_first_are_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"channels last.*Received: input_shape=\(2, 3, 32, 32\)"):
        Patches(8)(np.zeros((2, 3, 32, 32), "float32"))
    monkeypatch.setattr(keras.config, "image_data_format", lambda: "channels_first")
    with pytest.raises(ValueError, match="channels last"):
        Patches(1)(np.zeros((2, 3, 8, 8), "float32"))
    assert Patches(8)(np.zeros((2, 32, 32, 3), "float32")).shape == (2, 16, 192)
