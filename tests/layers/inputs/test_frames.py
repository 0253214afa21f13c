import keras
import numpy as np
import pytest

from keras_vit.layers import Frames
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

CLIPS = np.arange(2 * 3 * 4 * 5 * 2, dtype="float32").reshape(2, 3, 4, 5, 2)


def test_harness(tmp_path):
    run_layer_test(lambda dtype: Frames(3, dtype=dtype), CLIPS.shape, (2, 12, 5, 2), tmp_path=tmp_path)
    known = (None, 4, 5, 2)
    apart = lambda dtype: Frames(3, apart=True, dtype=dtype)  # noqa: E731
    run_layer_test(apart, (2, 12, 5, 2), (6, 4, 5, 2), tmp_path=tmp_path, unknown=known)


def test_frames_are_on_top_of_each_other_or_apart_and_back():
    on_top = keras.ops.convert_to_numpy(Frames(3)(CLIPS))
    np.testing.assert_array_equal(on_top[:, 4:8], CLIPS[:, 1])
    apart = keras.ops.convert_to_numpy(Frames(3, apart=True)(on_top))
    np.testing.assert_array_equal(apart, CLIPS.reshape(6, 4, 5, 2))
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(Frames(3)(apart)), on_top)
    assert Frames(3).compute_output_shape((6, 4, 5, 2)) == (2, 12, 5, 2)


def test_other_numbers_of_frames_are_refused():
    for layer, shape in (
        (Frames(4), CLIPS.shape),
        (Frames(5, apart=True), (2, 12, 5, 2)),
        (Frames(3), (2, 3, None, 5, 2)),
        (Frames(3, apart=True), CLIPS.shape),
    ):
        with pytest.raises(ValueError, match="must be . frames of known size. Received: input_shape="):
            layer(keras.KerasTensor(shape))
