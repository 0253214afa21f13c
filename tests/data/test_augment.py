import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment  # noqa: E402
from keras_vit.data.augment import augment  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (64, 9, 9, 3)).astype("float32")
SEED = tf.constant([3, 5], tf.int64)


def run(images=IMAGES, seed=SEED, **settings):
    return augment(tf.constant(images), Augment(**settings), seed).numpy()


def dot(row, column):
    """Images with one bright pixel."""
    images = np.zeros((200, 9, 9, 1), "float32")
    images[:, row, column] = 255
    return images


def centres(images):
    """Centre of mass of each image, (row, column), from the middle."""
    weight = images[..., 0] / images[..., 0].sum(axis=(1, 2), keepdims=True)
    at = np.arange(9) - 4
    return np.stack([(weight.sum(2) * at).sum(1), (weight.sum(1) * at).sum(1)], axis=1)


def test_nothing_asked_changes_nothing():
    np.testing.assert_array_equal(run(), IMAGES)


def test_same_seed_same_images_and_each_image_its_own_draw():
    everything = dict(rotation=20.0, scale=0.2, shear=0.2, translation=0.1, flip=True, erase=0.5)
    first = run(**everything)
    np.testing.assert_array_equal(first, run(**everything))
    assert np.abs(first - run(seed=tf.constant([3, 6], tf.int64), **everything)).max() > 10
    same = run(np.repeat(IMAGES[:1], 64, axis=0), **everything)
    assert len({image.tobytes() for image in same}) > 60


def test_rotation_turns_about_the_centre_and_stays_in_range():
    moved = centres(run(dot(4, 7), rotation=30.0))
    radius, angle = np.hypot(*moved.T), np.degrees(np.arctan2(moved[:, 0], moved[:, 1]))
    np.testing.assert_allclose(radius, 3, atol=0.3)
    assert 20 < angle.max() <= 31 and -31 <= angle.min() < -20


def test_translation_moves_by_at_most_its_share():
    moved = centres(run(dot(4, 4), translation=0.25))
    assert np.abs(moved).max() <= 0.25 * 9 + 1e-3
    assert moved[:, 0].std() > 0.5 and moved[:, 1].std() > 0.5


def test_scale_moves_along_the_ray():
    moved = centres(run(dot(2, 4), scale=0.5))
    np.testing.assert_allclose(moved[:, 1], 0, atol=1e-3)
    assert -3.2 < moved[:, 0].min() < -2.5 and -1.5 < moved[:, 0].max() < -0.9  # -2 times 0.5 to 1.5


def test_shear_moves_rows_sideways():
    moved = centres(run(dot(1, 4), shear=0.5))
    np.testing.assert_allclose(moved[:, 0], -3, atol=1e-3)
    assert 1 < np.abs(moved[:, 1]).max() <= 1.51


def test_flip_mirrors_half_of_the_images():
    flipped = run(flip=True)
    mirrored = [np.array_equal(a, b[:, ::-1]) for a, b in zip(flipped, IMAGES)]
    kept = [np.array_equal(a, b) for a, b in zip(flipped, IMAGES)]
    assert all(m or k for m, k in zip(mirrored, kept)) and 16 < sum(mirrored) < 48


def test_erase_blackens_one_rectangle_in_its_share_of_images():
    white = np.full((400, 20, 20, 1), 255, "float32")
    erased = run(white, erase=0.3)[..., 0] == 0
    touched = erased.any(axis=(1, 2))
    assert 0.2 < touched.mean() < 0.4
    for mask in erased[touched]:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        assert mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert 0.005 < mask.mean() < 0.27  # 2 to 20 %, give or take a pixel on each side
