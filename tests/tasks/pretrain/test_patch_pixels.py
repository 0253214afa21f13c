import keras
import numpy as np
import pytest

from keras_vit import Patches
from keras_vit.tasks.pretrain.patch_pixels import joined, statistics

pytestmark = pytest.mark.backend


def test_statistics():
    patches = np.random.default_rng(0).normal(3, 2, (2, 4, 6)).astype("float32")
    mean, deviation = map(keras.ops.convert_to_numpy, statistics(patches))
    np.testing.assert_allclose(mean[..., 0], patches.mean(-1), rtol=1e-5)
    np.testing.assert_allclose(deviation[..., 0], np.sqrt(patches.var(-1, ddof=1) + 1e-6), rtol=1e-5)


def test_joined_reverses_patches():
    images = np.random.default_rng(0).random((2, 6, 8, 3)).astype("float32")
    patches = keras.ops.convert_to_numpy(Patches((3, 2))(images))
    np.testing.assert_array_equal(joined(patches, (3, 2), images.shape), images)
