import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.data.augment.flow import apart, before_encoding, from_noise, on_the_way

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
    x, y = on_the_way(from_noise(GIVEN, SEED), SEED, "normal", 1.0, 0.5, "labels", 3)
    other, minus_noise = before_encoding(from_noise(GIVEN, SEED, (4, 5)), SEED, "normal", 1.0, 0.5, "labels", 3)
    for name in ("times", "labels"):
        np.testing.assert_array_equal(other[name], x[name])
    assert 10 < (x["labels"].numpy() == 3).sum() < 54
    np.testing.assert_array_equal(minus_noise, -other["images"])
    np.testing.assert_array_equal(other["pixels"], IMAGES)
    t = x["times"].numpy()[:, None, None, None]
    np.testing.assert_allclose(x["images"] + (1 - t) * y, IMAGES / 127.5 - 1, atol=1e-5)
    assert other["spread"].shape == (64, 2, 3, 5)
    assert abs(np.corrcoef(np.ravel(other["spread"]), np.ravel(minus_noise))[0, 1]) < 0.1


TEXTS = tf.constant([[3, 1, 0], [4, 5, 1]] * 3, "int64")


def test_images_are_mixed_with_noise_and_rows_of_ids_are_left_out_whole():
    examples = from_noise({"images": IMAGES[:6], "texts": TEXTS}, SEED)
    assert (examples["originals"].numpy() == IMAGES[:6].numpy()).all() and not examples["times"].numpy().any()
    x, velocity = on_the_way(examples, SEED, "uniform", 3.0, 0.5, "texts", np.array([1, 0, 0], "int32"))
    t = x["times"].numpy()[:, None, None, None]
    np.testing.assert_allclose(x["images"] + (1 - t) * velocity, IMAGES[:6] / 127.5 - 1, atol=1e-5)
    np.testing.assert_allclose(x["images"] - t * velocity, examples["images"], atol=1e-5)
    rows, kept = x["texts"].numpy(), (x["texts"].numpy() == TEXTS.numpy()).all(1)
    assert x["texts"].dtype == "int32" and 0 < kept.sum() < 6 and (rows[~kept] == [1, 0, 0]).all()


def test_a_shift_is_that_of_the_paper():
    """Esser et al. 2024, equation 23, of the share of noise."""
    examples = from_noise({"images": IMAGES[:6], "labels": tf.zeros(6, "int32")}, SEED)
    plain, shifted = (on_the_way(examples, SEED, "normal", shift, 0.0, "labels", 9)[0]["times"] for shift in (1.0, 4.0))
    noise = 1 - plain.numpy()
    np.testing.assert_allclose(1 - shifted, 4 * noise / (1 + 3 * noise), rtol=1e-5)


def test_another_seed():
    numbers = [tf.random.stateless_uniform((4,), seed).numpy() for seed in (SEED, apart(SEED))]
    assert (numbers[0] != numbers[1]).all()
