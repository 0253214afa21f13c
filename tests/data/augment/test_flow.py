import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.data.augment.flow import before_encoding, from_noise, on_the_way

SEED = tf.constant([1, 2])
IMAGES = tf.constant(np.random.default_rng(0).uniform(0, 255, (64, 8, 12, 3)), "float32")
LABELS = tf.constant(np.arange(64) % 3, "int64")
GIVEN = {"images": IMAGES, "labels": LABELS}


def test_noise_has_the_shape_of_what_is_drawn():
    examples = from_noise(GIVEN, SEED)
    assert examples["images"].shape == IMAGES.shape and (examples["times"].numpy() == 0).all()
    np.testing.assert_array_equal(examples["originals"], IMAGES)
    latents = from_noise(GIVEN, SEED, (4, 5))
    assert latents["images"].shape == (64, 2, 3, 5) and abs(float(tf.math.reduce_std(latents["images"])) - 1) < 0.1
    np.testing.assert_array_equal(latents["originals"], IMAGES)
    traced = tf.data.Dataset.from_tensors(GIVEN).map(lambda given: from_noise(given, SEED, (4, 5)))
    assert traced.element_spec["images"].shape[1:] == (2, 3, 5)


def test_latents_are_asked_at_the_times_and_labels_of_images():
    x, y = on_the_way(from_noise(GIVEN, SEED), SEED, "normal", 0.5, 3)
    other, minus_noise = before_encoding(from_noise(GIVEN, SEED, (4, 5)), SEED, "normal", 0.5, 3)
    for name in ("times", "labels"):
        np.testing.assert_array_equal(other[name], x[name])
    assert 10 < (x["labels"].numpy() == 3).sum() < 54
    np.testing.assert_array_equal(minus_noise, -other["images"])
    np.testing.assert_array_equal(other["pixels"], IMAGES)
    t = x["times"].numpy()[:, None, None, None]
    np.testing.assert_allclose(x["images"] + (1 - t) * y, IMAGES / 127.5 - 1, atol=1e-5)
    assert other["spread"].shape == (64, 2, 3, 5)
    assert abs(np.corrcoef(np.ravel(other["spread"]), np.ravel(minus_noise))[0, 1]) < 0.1
