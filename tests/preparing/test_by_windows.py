import types

import numpy as np
import pytest

import keras_vit
from keras_vit.preparing import by_windows
from keras_vit.preparing.of_bands import of_bands
from keras_vit.preparing.preprocessing import Preparation
from keras_vit.utils import bands

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("no_data", [None, 7, "nan"])
def test_windows_of_bands_are_parts_of_the_whole_picture(tmp_path, no_data):
    values = RNG.integers(100, 900, (30, 40, 4)).astype("float32" if no_data == "nan" else "uint16")
    if no_data is not None:
        values[3, 5] = np.nan if no_data == "nan" else no_data
    np.save(tmp_path / "a.npy", values)
    reading, limits = bands.Reading((4, 2), None, no_data), ((200, 100), (800, 900))
    preparation = types.SimpleNamespace(reading=reading, range=limits, shape=(None, 8, 8, 2))
    picture = by_windows.Windows(tmp_path / "a.npy", preparation)
    whole = of_bands(tmp_path / "a.npy", reading, 2, limits)
    assert picture.shape == whole.shape == (30, 40, 2) and whole.min() >= 100
    for top, left in ((0, 0), (10, 20), (22, 32)):
        np.testing.assert_array_equal(picture.read(top, left, 8, 8), whole[top : top + 8, left : left + 8])
    if no_data == "nan":
        preparation.reading = bands.Reading((4, 2))
        with pytest.raises(by_windows.NotReadError, match="a.npy.*NaN or infinite pixels"):
            by_windows.Windows(tmp_path / "a.npy", preparation).read(0, 0, 8, 8)


def test_arrays_and_files_have_the_same_pixels_and_are_thinned_alike(tmp_path):
    preparation = Preparation(keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap"))
    pixels = RNG.integers(0, 256, (30, 41, 3), "uint8")
    np.save(tmp_path / "a.npy", pixels)
    for image in (pixels, tmp_path / "a.npy"):
        picture = by_windows.at_own_size(preparation, image)
        assert hasattr(picture, "read") == (image is not pixels) and picture.shape == pixels.shape
        for step in (1, 7):
            np.testing.assert_array_equal(by_windows.thinned(picture, step), pixels[::step, ::step])


def test_a_damaged_file_is_named(tmp_path):
    preparation = Preparation(keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap"))
    (tmp_path / "a.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match="a.npy"):
        by_windows.at_own_size(preparation, tmp_path / "a.npy")
