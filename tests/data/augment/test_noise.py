import numpy as np
import tensorflow as tf

from keras_vit.data.augment.noise import noise, zeros


def test_noise_depends_on_the_seed_alone():
    images, seed = tf.zeros((4, 8, 8, 3)), tf.constant([3, 5], "int64")
    first = noise(seed, images, 6).numpy()
    assert first.shape == (4, 6) and first.dtype == np.float32 and first.min() >= 0 and first.max() < 1
    np.testing.assert_array_equal(noise(seed, images + 1, 6), first)
    assert not np.any(noise(tf.constant([3, 6], "int64"), images, 6) == first)
    assert len(np.unique(first)) == first.size


def test_zeros():
    assert zeros(tf.zeros((3, 4, 4, 1))).shape == (3, 1)
