import io
import pathlib
import threading

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from PIL import Image

from keras_vit.data.windows import opening
from keras_vit.utils import images

RANDOM = np.random.default_rng(0)


def written(path, pixels, **more):
    Image.fromarray(pixels).save(path, **more)
    return str(path)


def oriented(number):
    exif = Image.Exif()
    exif[images.ORIENTATION] = number
    return exif


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("ending", ["png", "bmp", "webp"])
def test_windows_of_a_file_that_is_decoded_whole(tmp_path, ending, channels):
    path = written(tmp_path / f"a.{ending}", RANDOM.integers(0, 256, (70, 90, 3), "uint8"))
    picture = opening.opened(path, (70, 90), channels, (20, 30), 1)
    assert picture.decoded and picture.shape == (70, 90, channels)
    whole = images.read_pixels(path, channels)
    np.testing.assert_array_equal(picture.read(3, 5, 20, 30), whole[3:23, 5:35])
    in_memory = opening.opened(pathlib.Path(path).read_bytes(), (70, 90), channels, (20, 30), 9)
    np.testing.assert_array_equal(in_memory.read(0, 0, 70, 90), whole)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("channels", [1, 3])
def test_windows_of_a_jpeg_are_those_of_the_whole(tmp_path, number, channels):
    smooth = Image.fromarray(RANDOM.integers(0, 256, (10, 12, 3), "uint8")).resize((120, 100))
    smooth.save(tmp_path / "a.jpg", exif=oriented(number))
    whole = images.read_pixels(tmp_path / "a.jpg", channels)
    picture = opening.opened(str(tmp_path / "a.jpg"), whole.shape[:2], channels, (32, 32), opening.FEW)
    assert not picture.decoded and picture.shape == whole.shape
    for top, left, height, width in ((0, 0, 32, 32), (13, 27, 40, 61), (67, 68, 33, 32)):
        window = picture.read(top, left, height, width)
        np.testing.assert_array_equal(window, whole[top : top + height, left : left + width])
    assert opening.opened(str(tmp_path / "a.jpg"), whole.shape[:2], channels, (32, 32), opening.FEW + 1).decoded


def test_a_mask_keeps_its_values():
    values = RANDOM.integers(0, 20, (30, 40), "uint8")
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    for item in (file.getvalue(), values[..., None]):
        window = opening.opened_mask(item, (30, 40)).read(2, 3, 9, 8)
        np.testing.assert_array_equal(window[..., 0], values[2:11, 3:11])


def test_a_large_file_without_windows_is_refused_before_it_is_read(tmp_path):
    path, size = written(tmp_path / "a.png", np.zeros((8, 8), "uint8")), (20_000, 20_000)
    refused = r"a.png' is too large: it has more than 128 million pixels, and its format"
    with pytest.raises(ValueError, match=refused):
        opening.opened(path, size, 3, (32, 32), 1)


def shelf_of(sizes, most):
    decodes = []

    def open_one(place):
        def read(*window):
            decodes.append(place)
            return np.full((sizes[place], 10, 1), place, "uint8")

        return opening.Picture((sizes[place], 10, 1), np.dtype("uint8"), read, decoded=True)

    return opening.Shelf(open_one, most), decodes


def test_a_shelf_keeps_what_was_read_last():
    shelf, decodes = shelf_of([10, 10, 10, 90], most=200)
    for place in (0, 1, 0, 2, 0, 1, 2):
        assert (shelf.read(place, (0, 0), (4, 4)) == place).all()
    assert decodes == [0, 1, 2, 1, 2]  # 2 took the place of 1, and 1 that of 2
    assert shelf.bytes <= 200
    shelf.read(3, (0, 0), (4, 4))  # larger than all that may be kept: it is alone
    assert list(shelf.kept) == [3] and shelf.bytes == 900
    shelf.read(0, (0, 0), (4, 4))
    assert list(shelf.kept) == [0] and shelf.bytes == 100


def test_what_is_beyond_a_picture_is_left_out():
    shelf, _ = shelf_of([10], most=200)
    assert shelf.read(0, (8, 0), (4, 20)).shape == (2, 10, 1)


def test_two_threads_decode_a_picture_once():
    shelf, decodes = shelf_of([10, 10, 10], most=10_000)
    gate = threading.Barrier(8)

    def work():
        gate.wait()
        for place in (0, 1, 2) * 5:
            shelf.read(place, (0, 0), (4, 4))

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(decodes) == [0, 1, 2]
