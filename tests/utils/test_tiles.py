import itertools

import numpy as np
import pytest

from keras_vit.utils import tiles
from keras_vit.utils.tiles import LargeMask, rows_of, starts, tiled
from tests.small import peak

RNG = np.random.default_rng(0)
SIZE = (8, 12, 3)


def double(images):
    assert images.shape[1:] == SIZE
    return images.repeat(2, 1).repeat(2, 2)[..., :2]


@pytest.mark.parametrize("sides", [(8, 12), (9, 40), (3, 5), (8, 5), (50, 37)])
def test_images_of_any_size_get_what_the_function_makes_of_each_pixel(sides):
    images = RNG.normal(size=(2, *sides, 3)).astype("float32")
    got = tiled(double, SIZE)(images)
    np.testing.assert_allclose(got, images.repeat(2, 1).repeat(2, 2)[..., :2], atol=1e-5)


def test_tiles_overlap_and_blend_without_a_step():
    calls = []

    def rising(images):  # a step from one tile to the next, if they were laid side by side
        calls.append(len(images))
        return np.broadcast_to(np.linspace(0, 1, 12), images.shape[:3])[..., None]

    found = tiled(rising, SIZE)(np.zeros((1, 8, 39, 3)))
    assert calls == [4] and found.shape == (1, 8, 39, 1)
    assert np.abs(np.diff(found[0, 0, :, 0])).max() < 0.35  # 1 without blending
    np.testing.assert_allclose(found[0, :, 0], 0, atol=1e-6)
    np.testing.assert_allclose(found[0, :, -1], 1, atol=1e-6)


def test_few_tiles_are_given_at_once(monkeypatch):
    monkeypatch.setattr(tiles, "AT_ONCE", 2 * 8 * 12 * 3)
    counts = []
    tiled(lambda images: counts.append(len(images)) or images, SIZE)(np.zeros((1, 20, 30, 3)))
    assert counts == [2] * 5  # of nine tiles, one twice


def test_an_image_of_a_tile_s_size_goes_through_as_it_is():
    images = RNG.normal(size=(3, *SIZE))
    np.testing.assert_array_equal(tiled(double, SIZE)(images), double(images))


@pytest.mark.parametrize("sides", [(8, 12), (9, 40), (3, 5), (50, 37)])
def test_rows_are_finished_one_after_another(sides):
    image = RNG.integers(0, 256, (1, *sides, 3), "uint8")
    heights, whole = [], tiled(double, SIZE)(image)
    finish = lambda rows: heights.append(len(rows)) or np.rint(rows).astype("uint8")  # noqa: E731
    got = tiled(double, SIZE, finish=finish)(image)
    assert got.dtype == np.uint8 and sum(heights) == 2 * sides[0] and max(heights) <= 2 * SIZE[0]
    np.testing.assert_array_equal(got, np.rint(whole))


def test_memory_holds_the_image_its_output_and_few_rows():
    image = np.zeros((1, 4000, 400, 3), "uint8")
    shrunk = lambda images: images[..., :1]  # noqa: E731
    run = tiled(shrunk, (100, 100, 3), finish=lambda rows: rows.astype("uint8"))
    assert peak(lambda: run(image)) < image.nbytes  # the output is a third; in float32 it alone would be 4/3


def test_other_inputs_go_with_the_tiles_of_their_image():
    def shifted(examples):
        assert examples.keys() == {"images", "labels"} and len(examples["labels"]) == len(examples["images"])
        return examples["images"] + examples["labels"][:, None, None, None]

    images, labels = RNG.normal(size=(2, 20, 31, 3)).astype("float32"), np.array([10, 20])
    for given in (images, images[:, :8, :12]):
        got = tiled(shifted, SIZE)({"images": given, "labels": labels})
        np.testing.assert_allclose(got, given + labels[:, None, None, None], atol=1e-5)


def test_each_tile_may_have_its_own_part_of_another_image():
    """A function that returns the part gives that image back, as large as its factor says."""
    image, other = np.zeros((1, 20, 26, 1), "uint8"), RNG.integers(0, 256, (1, 40, 52, 1)).astype("float32")

    def beside(image, others):
        assert image.shape == (20, 26, 1) and others["other"].shape == (1, 40, 52, 1)
        return lambda y, x: {"other": others["other"][:, 2 * y : 2 * y + 16, 2 * x : 2 * x + 12]}

    function = tiled(lambda each: each["other"], (8, 6, 1), beside=beside)
    np.testing.assert_allclose(function({"images": image, "other": other}), other, atol=1e-3)
    small = {"images": image[:, :8, :6], "other": other}  # of a tile's size, with an other that is larger
    with pytest.raises(AssertionError):
        function(small)


@pytest.mark.parametrize("step", [None, 1, 16, 20])
@pytest.mark.parametrize("overlap", [0, 0.25, 0.5])
@pytest.mark.parametrize("side", [1, 511, 512, 513, 600, 1591, 2187, 5632])
def test_tiles_cover_a_line_to_its_end(side, overlap, step):
    """As torchgeo#431, whose tiles of 512 in 600 pixels ended at 512, and detectree2#211."""
    places = starts(side, 512, overlap, step)
    assert places[0] == 0 and max(places[-1] + 512, side) == max(512, side) and places == sorted(set(places))
    assert all(after - before <= max(512 * (1 - overlap), 1) + 0.5 for before, after in itertools.pairwise(places))
    assert all(place % (step or 1) == 0 for place in places[:-1])


@pytest.mark.parametrize("overlap", [0, 0.25, 0.5])
def test_no_pixel_is_divided_by_a_weight_of_zero(overlap):
    """As LMI_AI_Solutions#401: a window that falls to zero leaves borders and seams without a number."""
    image = RNG.normal(size=(1, 37, 61, 3)).astype("float32")
    found = tiled(double, SIZE, overlap, step=2)(image)
    assert found.shape == (1, 74, 122, 2)  # not larger than the picture, as pytorch-toolbelt#24
    np.testing.assert_allclose(found, image.repeat(2, 1).repeat(2, 2)[..., :2], atol=1e-5)


class Read:
    """A picture of which windows are read."""

    def __init__(self, pixels):
        self.pixels = pixels
        self.shape = pixels.shape
        self.largest = 0

    def read(self, top, left, height, width):
        self.largest = max(self.largest, height * width)
        assert top + height <= self.shape[0] and left + width <= self.shape[1]
        return self.pixels[top : top + height, left : left + width]


@pytest.mark.parametrize("sides", [(8, 12), (3, 40), (5, 7), (50, 37)])
def test_a_picture_is_read_by_windows(sides, monkeypatch):
    picture = Read(RNG.integers(0, 256, (*sides, 3), "uint8"))
    found = tiled(double, SIZE)([picture])
    np.testing.assert_allclose(found, tiled(double, SIZE)(picture.pixels[None]), atol=1e-4)
    assert picture.largest <= 8 * 12
    rows = list(rows_of(lambda tiles: tiles[..., :1], picture, SIZE))
    np.testing.assert_allclose(np.concatenate(rows)[: sides[0], : sides[1], 0], picture.pixels[..., 0], atol=1e-4)
    monkeypatch.setattr(tiles, "MOST_PIXELS", 10)
    finish = lambda rows: np.rint(rows[..., 0]).astype("uint8") % 3  # noqa: E731
    same = lambda images: images[..., :1]  # noqa: E731
    (large,) = tiled(same, SIZE, finish=finish)([picture])
    assert isinstance(large, LargeMask) and large.shape == sides
    mask = np.concatenate(list(large))
    np.testing.assert_array_equal(mask, tiled(same, SIZE, finish=finish)(picture.pixels[None])[0])
    assert large.counted().tolist()[:3] == np.bincount(mask.ravel(), minlength=3).tolist()


def test_many_tiles_show_how_many_are_done(monkeypatch):
    shown = []
    counted = lambda batches, total, what, after: shown.append((total, what)) or batches  # noqa: E731
    monkeypatch.setattr(tiles.progress, "counted", counted)
    tiled(double, SIZE)(np.zeros((1, 20, 30, 3), "uint8"))
    assert not shown
    tiled(double, SIZE)(np.zeros((1, 80, 120, 3), "uint8"))
    assert shown == [(13 * 13, "tiles")]
