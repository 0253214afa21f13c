import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.data.augment import multicrop
from keras_vit.data.augment.multicrop import colored, cropped

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 16, 12, 3)).astype("float32")
SEED = tf.constant([3, 5], "int64")
ROWS, COLUMNS = np.meshgrid(np.arange(40.0), np.arange(60.0), indexing="ij")
RAMP = np.stack([ROWS, COLUMNS, 0 * ROWS], -1)[None].astype("float32")  # a pixel's value is its place


def made(seed=SEED, images=IMAGES, **more):
    given = {"local_crops": 3, "local_size": (8, 6), "border": 0.4, **more}
    return multicrop.multicrop(tf.constant(images), seed, **given)


def test_shapes_and_seeds():
    large, small = made()
    assert large.shape == (6, 2, 16, 12, 3) and small.shape == (6, 3, 8, 6, 3) and large.dtype == small.dtype == "uint8"
    again = made()
    np.testing.assert_array_equal(large, again[0])
    np.testing.assert_array_equal(small, again[1])
    others = made(seed=tf.constant([3, 6], "int64"))
    assert (large.numpy() != others[0].numpy()).mean() > 0.5
    assert (large[:, 0].numpy() != large[:, 1].numpy()).mean() > 0.5  # each crop draws its own numbers
    assert (small[:, 0].numpy() != small[:, 1].numpy()).mean() > 0.5
    assert made(local_crops=0)[1] is None
    assert made(images=IMAGES[..., :1])[0].shape == (6, 2, 16, 12, 1)
    assert made(images=IMAGES[..., [0] * 5], colors=False)[0].shape == (6, 2, 16, 12, 5)


def drawn(*numbers):
    return lambda name, count, size: tf.tile(tf.constant([numbers], "float32"), (count, 1))


def test_a_crop_is_a_box_of_the_image():
    all_of_it = cropped(tf.constant(RAMP), (40, 60), (1.0, 1.0), drawn(0.5, 0.5, 0, 0, 0.9), False)
    # A square of the whole area does not fit into an oblong image: its height is cut off.
    side = np.sqrt(40 * 60)
    columns = (np.arange(60) + 0.5) * side / 60 - 0.5
    np.testing.assert_allclose(all_of_it[0, :, :, 0], RAMP[0, :, :, 0], atol=1e-3)
    np.testing.assert_allclose(all_of_it[0, 7, :, 1], columns.clip(0), atol=1e-3)
    quarter = cropped(tf.constant(RAMP), (10, 10), (0.25, 0.25), drawn(0.5, 0.5, 0.5, 1.0, 0.9), True)
    rows = 0.5 * (40 - side / 2) + (np.arange(10) + 0.5) * side / 20 - 0.5
    columns = 60 - side / 2 + (np.arange(10) + 0.5) * side / 20 - 0.5
    np.testing.assert_allclose(quarter[0, :, 3, 0], rows, atol=1e-3)
    np.testing.assert_allclose(quarter[0, 3, :, 1], columns.clip(0, 59), atol=1e-3)
    mirrored = cropped(tf.constant(RAMP), (10, 10), (0.25, 0.25), drawn(0.5, 0.5, 0.5, 1.0, 0.1), True)
    np.testing.assert_allclose(mirrored, quarter[:, :, ::-1], atol=1e-3)


def test_areas_are_those_asked_for():
    images = tf.tile(tf.constant(RAMP), (500, 1, 1, 1))
    for name, areas in (("a", (0.05, 0.4)), ("b", (0.4, 1.0))):
        crops = cropped(images, (8, 8), areas, multicrop._draws(SEED, name), False).numpy()
        sides = [(crops[:, -1, -1, i] - crops[:, 0, 0, i]) * 8 / 7 for i in range(2)]
        shares = sides[0] * sides[1] / 2400
        assert shares.max() < areas[1] + 0.01 and (shares > areas[0] - 0.01).mean() > 0.9  # the edges repeat
        assert np.quantile(shares, 0.95) - np.quantile(shares, 0.05) > 0.6 * (areas[1] - areas[0])


def numbers_of(*numbers):
    """Returns a source of the same numbers for what is chosen, and of 1/2 for the jitter: no change."""
    return lambda name, count, size: tf.tile(tf.constant([numbers if name == "colors" else [0.5] * size]), (count, 1))


def test_colors():
    images = tf.constant(IMAGES)

    def of(*numbers, blurred=1.0, inverted=1.0, deviations=(1.0, 1.0)):
        return colored(images, numbers_of(*numbers), blurred, inverted, deviations).numpy()

    off = 0.999
    np.testing.assert_allclose(of(off, off, 1.0, 0.5, 1.0), IMAGES, atol=1e-3)
    gray = of(off, 0.1, 1.0, 0.5, 1.0)
    np.testing.assert_allclose(gray, np.tile(IMAGES @ np.float32([[0.299], [0.587], [0.114]]), 3), atol=1e-3)
    np.testing.assert_allclose(of(off, off, 1.0, 0.5, 0.1), np.where(IMAGES < 128, IMAGES, 255 - IMAGES), atol=1e-3)
    assert of(off, off, 0.1, 0.5, 1.0).std() < 0.6 * IMAGES.std()
    np.testing.assert_allclose(of(off, off, 0.1, 0.5, 1.0, deviations=(0.01, 0.02)), IMAGES, atol=1e-3)
    np.testing.assert_allclose(of(off, off, 0.1, 0.5, 1.0, blurred=0.0, inverted=0.0), IMAGES, atol=1e-3)


def test_the_second_global_crop_alone_is_inverted():
    bright = np.full((400, 4, 4, 3), 250, "float32")
    large, small = made(images=bright, local_size=(2, 2))
    inverted = [(crops.numpy() < 100).all((1, 2, 3)).mean() for crops in (large[:, 0], large[:, 1], small[:, 0])]
    assert inverted[0] == inverted[2] == 0 and 0.1 < inverted[1] < 0.3
