import numpy as np
import pytest
from PIL import Image

from keras_vit.inspecting import crops, near, pixels
from tests.inspecting.conftest import picture


def grays(images):
    return np.stack([pixels.summary(np.ascontiguousarray(image))[2] for image in images])


def part(image, share, rng):
    side = round(len(image) * share)
    top, left = rng.integers(0, len(image) - side + 1, 2)
    return np.asarray(Image.fromarray(image[top : top + side, left : left + side]).resize((32, 32)))


@pytest.mark.parametrize("share", [1.0, 0.9, 0.8])
def test_a_part_is_found_wherever_it_is(share):
    rng = np.random.default_rng(0)
    images = [picture(i, 64) for i in range(20)]
    parts = [part(image, share, rng) for image in images]
    for first, second in ((images, parts), (parts, images)):
        scores, is_part, mirrored = crops.likeness(grays(first), grays(second))
        assert scores.min() > near.PART and not mirrored.any()
        assert is_part.any() == (share < 1) and (share > 0.8 or is_part.all())
    scores, _, mirrored = crops.likeness(grays(images), grays([each[:, ::-1] for each in parts]))
    assert scores.min() > near.PART and mirrored.all()


def test_other_pictures_are_no_parts():
    images = grays([picture(i) for i in range(60)])
    scores, *_ = crops.likeness(np.repeat(images, 60, 0), np.tile(images, (60, 1, 1)))
    scores = scores.reshape(60, 60)
    assert scores[np.eye(60, dtype=bool)].min() == 1 and scores[~np.eye(60, dtype=bool)].max() < near.PART


def test_windows_are_means():
    """Of a ramp, the mean of a cell is its center."""
    ramp = np.tile(np.arange(crops.SIDE) + 0.5, (crops.SIDE, 1)).reshape(1, -1)
    found = (ramp @ crops.windows()).reshape(-1, crops.CELLS, crops.CELLS)
    whole = (np.arange(crops.CELLS) + 0.5) * crops.SIDE / crops.CELLS
    np.testing.assert_allclose(found[0], np.tile(whole, (crops.CELLS, 1)), rtol=1e-5)
    np.testing.assert_allclose(found[1], np.tile(whole * 0.95, (crops.CELLS, 1)), atol=0.03)
    assert len(found) == 1 + (len(crops.SCALES) - 1) * crops.STEPS**2
