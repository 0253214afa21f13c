import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.data import packing
from keras_vit.data.augment.color import jitter
from keras_vit.data.draws import draws
from keras_vit.data.readers.decoding import decode

CLIPS = np.random.default_rng(0).integers(0, 256, (2, 5, 6, 7, 3)).astype("uint8")


def test_frames_are_folded_into_channels_and_back():
    images = packing.folded(CLIPS)
    assert images.shape == (2, 6, 7, 15)
    np.testing.assert_array_equal(images[..., 3:6], CLIPS[:, 1])
    np.testing.assert_array_equal(packing.unfolded(images[0], 5), CLIPS[0])
    np.testing.assert_array_equal(packing.folded_tensor(tf.constant(CLIPS)), images)
    np.testing.assert_array_equal(packing.unfolded_tensor(tf.constant(images), 5), CLIPS)


@pytest.mark.parametrize("frames", [1, 3, 5])
def test_bytes_are_decoded_as_colors_or_gray(frames):
    clip = CLIPS[0, :frames]
    data = tf.constant(packing.packed(clip))
    np.testing.assert_array_equal(decode(data, 3 * frames, tf.constant(1)), packing.folded(clip))
    gray = np.asarray(decode(data, frames, tf.constant(1)))
    wanted = tf.image.rgb_to_grayscale(clip)[..., 0].numpy()
    assert gray.shape == (6, 7, frames) and np.abs(gray.transpose(2, 0, 1).astype(int) - wanted).max() <= 1


def test_all_frames_get_one_change_of_colors():
    still = np.repeat(CLIPS[:, :1], 5, axis=1).astype("float32")
    folded = tf.constant(packing.folded(still))
    found = packing.unfolded_tensor(jitter(folded, 0.4, draws(0, 0, 0), channels=3), 5).numpy()
    alone = jitter(tf.constant(still[:, 0]), 0.4, draws(0, 0, 0)).numpy()
    np.testing.assert_allclose(found, np.repeat(alone[:, None], 5, axis=1), atol=1e-2)
    assert np.abs(alone - still[:, 0]).max() > 5
    gray = tf.constant(packing.folded(CLIPS[..., :1]).astype("float32"))
    assert jitter(gray, 0.4, draws(0, 0, 0), channels=1).shape == gray.shape
