import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.data.augment.test_augment import IMAGES, run


def dot(row, column):
    """Images with one bright pixel."""
    images = np.zeros((200, 9, 9, 1), "float32")
    images[:, row, column] = 255
    return images


def centers(images):
    """Center of mass of each image, (row, column), from the middle."""
    weight = images[..., 0] / images[..., 0].sum(axis=(1, 2), keepdims=True)
    at = np.arange(9) - 4
    return np.stack([(weight.sum(2) * at).sum(1), (weight.sum(1) * at).sum(1)], axis=1)


def test_a_padded_crop_is_a_window_of_the_padded_image():
    cut = run(crop="padded", crop_padding=2)
    padded = np.pad(IMAGES, ((0, 0), (2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (9, 9), (1, 2)).transpose(0, 1, 2, 4, 5, 3)
    matches = (windows == cut[:, None, None]).all(axis=(3, 4, 5))  # (64, 5, 5)
    np.testing.assert_array_equal(matches.sum((1, 2)), 1)
    places = np.argwhere(matches)[:, 1:]
    assert set(places.ravel()) == {0, 1, 2, 3, 4} and abs(np.corrcoef(places.T)[0, 1]) < 0.4
    many = run(np.repeat(IMAGES[:1], 5000, axis=0), crop="padded", crop_padding=1)
    counts = np.unique(many.reshape(5000, -1), axis=0, return_counts=True)[1]
    assert len(counts) == 9 and abs(counts - 5000 / 9).max() < 5 * np.sqrt(5000 / 9)


def test_rotation_turns_about_the_center_and_stays_in_range():
    moved = centers(run(dot(4, 7), rotation=30.0))
    radius, angle = np.hypot(*moved.T), np.degrees(np.arctan2(moved[:, 0], moved[:, 1]))
    np.testing.assert_allclose(radius, 3, atol=0.3)
    assert 20 < angle.max() <= 31 and -31 <= angle.min() < -20


def test_translation_moves_by_at_most_its_share():
    moved = centers(run(dot(4, 4), translation=0.25))
    assert np.abs(moved).max() <= 0.25 * 9 + 1e-3
    assert moved[:, 0].std() > 0.5 and moved[:, 1].std() > 0.5


def test_scale_moves_along_the_ray():
    moved = centers(run(dot(2, 4), scale=0.5))
    np.testing.assert_allclose(moved[:, 1], 0, atol=1e-3)
    assert -3.2 < moved[:, 0].min() < -2.5 and -1.5 < moved[:, 0].max() < -0.9  # -2 times 0.5 to 1.5


def test_shear_moves_rows_sideways():
    moved = centers(run(dot(1, 4), shear=0.5))
    np.testing.assert_allclose(moved[:, 0], -3, atol=1e-3)
    assert 1 < np.abs(moved[:, 1]).max() <= 1.51
