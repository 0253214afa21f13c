import io
import os

import numpy as np
import pytest
from PIL import Image, ImageDraw

from keras_vit.inspecting import hashes, pixels
from tests.inspecting.conftest import picture


def thumbs(images):
    return summaries(images)[0]


def summaries(images):
    """Returns the thumbnails of pictures, in color and larger ones in gray."""
    each = [pixels.summary(np.ascontiguousarray(image))[1:] for image in images]
    return [np.stack(values) for values in zip(*each)]


def found(images):
    """Returns how each pair that looks alike is turned."""
    pairs = {}
    for first, second, scores, view in hashes.alike(*summaries(images)):
        pairs |= dict.fromkeys(zip(first.tolist(), second.tolist()), view)
        assert scores.min() >= hashes.ALIKE and scores.max() <= 1
    return pairs


def drawing(seed, side=28):
    """Returns a bright stroke on black, in the middle, from its top to its bottom."""
    rng = np.random.default_rng(seed)
    image = Image.new("L", (4 * side, 4 * side))
    points = [(side * (1 + 2 * rng.random()), side * (0.6 + 0.7 * i)) for i in range(5)]
    ImageDraw.Draw(image).line(points, fill=255, width=int(rng.integers(8, 14)))
    small = np.asarray(image.resize((side, side), Image.Resampling.BOX))
    return np.repeat(small[..., None], 3, -1)


def as_jpeg(image, quality=60):
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(file, "JPEG", quality=quality)
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
    pairs = found(images)
    assert {*pairs} == {(i, 40 + i) for i in range(10)} and {*pairs.values()} == {change.strip()}


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
        every = np.full_like(own, 2**56 - 1)
        pairs = [pair for part in hashes._close((own, every), (own, every), "comparing") for pair in zip(*part)]
    finally:
        hashes.AT_ONCE = blocks
    assert {*pairs} == true and (100, 200) in true


def test_plain_pictures_have_no_hash():
    plain = np.full((20, 20, 3), 250, "uint8")
    assert hashes.is_flat(thumbs([plain, plain - 250, as_jpeg(plain), picture(0)])).tolist() == [True] * 3 + [False]


def test_a_page_with_one_mark_is_plain():
    """It has contrast, and no part of its hash says anything."""
    page = np.full((64, 64, 3), 250, "uint8")
    page[40:48, 40:48] = 0
    assert hashes.is_flat(thumbs([page])).all() and thumbs([page]).std() > 20


def test_parts_in_a_plain_ground_are_not_compared():
    """Else each drawing is compared with each other one."""
    own = np.zeros((50, 2), "uint64")
    uneven = np.full_like(own, 2**6 - 1)
    assert not [*hashes._close((own, uneven), (own, uneven), "comparing")]


def test_drawings_on_a_plain_ground_are_no_copies():
    """Digits differ in few bits and parts: their copies are found, also of another size."""
    images = [np.rot90(drawing(i), i % 4) for i in range(60)]
    assert hashes.has_ground(thumbs(images)).all() and not hashes.has_ground(thumbs([picture(0)])).any()
    images += [as_jpeg(images[0], 75), larger(images[1]), as_jpeg(images[2][:, ::-1], 75)]
    assert found(images) == {(0, 60): "", (1, 61): "", (2, 62): "mirrored"}


@pytest.mark.skipif(not os.environ.get("TFDS_DATA_DIR"), reason="TFDS_DATA_DIR, with mnist, is not set")
def test_mnist_has_no_copies():
    datasets = pytest.importorskip("tensorflow_datasets")
    try:
        data = datasets.load("mnist", split="train[:1000]", batch_size=-1, download=False)
    except AssertionError:
        pytest.skip("mnist is not in TFDS_DATA_DIR")
    images = [pixels.pixels_of(image) for image in np.asarray(data["image"])]
    images += [as_jpeg(images[i], 75) for i in range(50)]
    pairs = {*found(images)}
    assert pairs <= {(i, 1000 + i) for i in range(50)} and len(pairs) >= 35


def test_likeness_sees_colors():
    """Two pictures of the same shapes in other colors are not one picture."""
    image = picture(0)
    gray = np.repeat(image[..., 1:2], 3, -1)
    red = gray * np.array([1, 0.2, 0.2])
    score = hashes.likeness(*(thumbs([each.astype("uint8")]) for each in (gray, red)))
    assert score < 0.5 and hashes.likeness(thumbs([image]), thumbs([image])) == 1
