import keras
import numpy as np
import pytest

from keras_vit.layers import Frames, Patches, Tubelets
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

CLIPS = np.random.default_rng(0).normal(size=(2, 4, 6, 9, 2)).astype("float32")  # patches of 3: 2 x 3 a frame


def tubelets(clips, length, fold=False):
    return keras.ops.convert_to_numpy(Tubelets(4, length, fold)(Patches(3)(Frames(4)(clips))))


@pytest.mark.parametrize("fold", [False, True])
def test_harness(tmp_path, fold):
    shape, known = ((4, 3, 10), (None, 3, 10)) if fold else ((2, 6, 10), (None, 6, 10))
    run_layer_test(lambda dtype: Tubelets(4, 2, fold, dtype=dtype), (2, 12, 5), shape, tmp_path=tmp_path, unknown=known)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_order_is_time_row_column_and_inside_time_row_column_channel(length):
    found = tubelets(CLIPS, length)
    steps = 4 // length
    wanted = CLIPS.reshape(2, steps, length, 2, 3, 3, 3, 2).transpose(0, 1, 3, 5, 2, 4, 6, 7)
    np.testing.assert_array_equal(found, wanted.reshape(2, steps * 6, length * 18))
    np.testing.assert_array_equal(tubelets(CLIPS, length, fold=True), found.reshape(2 * steps, 6, length * 18))


def test_a_dense_layer_after_it_is_a_convolution_over_time_and_space():
    kernel = np.random.default_rng(1).normal(size=(2, 3, 3, 2, 5)).astype("float32")
    found = tubelets(CLIPS, 2) @ kernel.reshape(-1, 5)
    wanted = keras.ops.conv(CLIPS, kernel, strides=(2, 3, 3), padding="valid")
    np.testing.assert_allclose(found, keras.ops.convert_to_numpy(wanted).reshape(2, -1, 5), atol=1e-4)


def test_bad_arguments():
    with pytest.raises(ValueError, match="must divide those of a clip. Received: length=3, frames=8"):
        Tubelets(8, 3)
    for shape in ((2, 10, 5), (2, None, 5), (2, 12)):
        with pytest.raises(ValueError, match=r"patches of 4 frames. Received: input_shape="):
            Tubelets(4)(keras.KerasTensor(shape))
