import numpy as np
import pytest
from keras import ops

import keras_vit
from keras_vit import ShiftImage
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_layer(tmp_path):
    run_layer_test(lambda dtype: ShiftImage(2, dtype=dtype), (2, 6, 5, 3), (2, 6, 5, 3), tmp_path=tmp_path)


def test_patches_are_those_of_a_padded_convolution():
    images = np.random.default_rng(0).normal(size=(1, 8, 12, 2)).astype("float32")
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    found = np.asarray(keras_vit.Patches(4)(ShiftImage(1)(images)))
    wanted = [padded[0, r : r + 4, c : c + 4].ravel() for r in (0, 4) for c in (0, 4, 8)]
    np.testing.assert_array_equal(found[0], wanted)


def test_refused():
    with pytest.raises(ValueError, match="pixels"):
        ShiftImage(0)
    with pytest.raises(ValueError, match="more than 2 pixels a side"):
        ShiftImage(2)(ops.ones((1, 2, 8, 3)))
