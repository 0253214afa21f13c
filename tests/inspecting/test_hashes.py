import io

import numpy as np
import pytest
from PIL import Image

from keras_vit.inspecting import hashes, pixels
from tests.inspecting.conftest import picture


def thumbs(images):
    return np.stack([pixels.summary(np.ascontiguousarray(image))[1] for image in images])


def as_jpeg(image, quality=60):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def larger(image):
    return np.asarray(Image.fromarray(image).resize((60, 60), Image.Resampling.BICUBIC))


CHANGES = {
    "": as_jpeg,
    " ": larger,
    "mirrored": lambda image: as_jpeg(image[:, ::-1]),
    "turned": lambda image: as_jpeg(np.rot90(image)),
    "turned ": lambda image: larger(np.rot90(image, 2)),
    "mirrored and turned": lambda image: np.rot90(image[:, ::-1], 3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_copies_are_found_and_nothing_else(change):
    images = [picture(i) for i in range(40)]
    images += [CHANGES[change](image) for image in images[:10]]
    found = {}
    for first, second, scores, view in hashes.alike(thumbs(images)):
        found |= dict.fromkeys(zip(first.tolist(), second.tolist()), view)
        assert scores.min() >= hashes.ALIKE and scores.max() <= 1
    assert {*found} == {(i, 40 + i) for i in range(10)} and {*found.values()} == {change.strip()}


def test_all_hashes_that_share_a_part_are_compared():
    """Also if most of them share it: blocks are smaller than the pairs."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, 2**56, (300, 2), "uint64")
    own[:, 0] &= np.uint64(2**42 - 1)  # one part is equal in all
    own[200] = own[100] ^ np.uint64(0b111)
    close = np.bitwise_count(own[:, None] ^ own[None]).sum(-1) <= hashes.MOST
    true = {(i, k) for i, k in zip(*np.nonzero(close)) if i < k}
    blocks = hashes.AT_ONCE
    try:
        hashes.AT_ONCE = 1000
        found = [pair for part in hashes._close(own, own, "comparing") for pair in zip(*part)]
    finally:
        hashes.AT_ONCE = blocks
    assert {*found} == true and (100, 200) in true


def test_plain_pictures_have_no_hash():
    plain = np.full((20, 20, 3), 250, "uint8")
    assert hashes.is_flat(thumbs([plain, plain - 250, as_jpeg(plain), picture(0)])).tolist() == [True] * 3 + [False]


def test_likeness_sees_colors():
    """Two pictures of the same shapes in other colors are not one picture."""
    image = picture(0)
    gray = np.repeat(image[..., 1:2], 3, -1)
    red = gray * np.array([1, 0.2, 0.2])
    score = hashes.likeness(*(thumbs([each.astype("uint8")]) for each in (gray, red)))
    assert score < 0.5 and hashes.likeness(thumbs([image]), thumbs([image])) == 1
