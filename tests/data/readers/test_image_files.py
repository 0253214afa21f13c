import os
import pathlib

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data.readers import image_files
from tests import picturefiles


def test_files_are_resized_as_the_recipe_says(tmp_path):
    (tmp_path / "color.png").write_bytes(picturefiles.EXACT["color.png"])
    images = image_files.read_files([tmp_path / "color.png"] * 2, (*picturefiles.COLOR.shape[:2], 3))
    assert images.dtype == np.float32
    np.testing.assert_array_equal(images, [picturefiles.COLOR] * 2)
    (center,) = image_files.read_files([tmp_path / "color.png"], (8, 8, 3), Data(resize=12))
    np.testing.assert_array_equal(center, picturefiles.COLOR[2:10, 6:14])


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "area"])
def test_a_graph_cuts_as_its_operations_one_by_one(method, tmp_path):
    from PIL import Image

    for shape, resize in [((8, 8, 3), None), ((9, 7, 3), None), ((9, 7, 3), 9), ((9, 7, 3), "aspect")]:
        pixels = np.random.default_rng(0).integers(0, 256, (*shape[:2], 3)).astype("uint8")
        Image.fromarray(pixels).save(tmp_path / "a.png")
        for antialias in (True, False):
            data = Data(resize=resize, method=method, antialias=antialias, crop_offset="floor")
            wanted = image_files.crops.evaluation_image(pixels, (8, 8, 3), data)
            np.testing.assert_array_equal(image_files.reader((8, 8, 3), data)(tmp_path / "a.png"), wanted)


def test_unreadable_files_are_refused(tmp_path):
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(ValueError, match=r"text.png' is not a PNG, JPEG, BMP, GIF or WebP image"):
        image_files.read_files([tmp_path / "text.png"], (3, 3, 3))
    (tmp_path / "cut.png").write_bytes(picturefiles.EXACT["gray.png"][:-30])
    with pytest.raises(ValueError, match=r"cut.png' cannot be read as an image"):
        image_files.read_files([tmp_path / "cut.png"], (3, 3, 3))
    with pytest.raises(FileNotFoundError, match="nothing.png"):
        image_files.read_files([tmp_path / "nothing.png"], (3, 3, 3))


def test_what_is_not_read_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(image_files.crops, "evaluation_image", lambda *_: pytest.fail("decodes"))
    for name, (data, message) in picturefiles.REFUSED.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=message):
            image_files.read_files([tmp_path / name], (3, 3, 3))
    for path in picturefiles.irregular(tmp_path):
        with pytest.raises(ValueError, match="is not a regular file"):
            image_files.read_files([path], (3, 3, 3))


def test_a_name_may_be_no_utf_8(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")
    pathlib.Path(path).write_bytes(picturefiles.EXACT["gray.png"])
    assert image_files.read_files([path], (3, 3, 1)).shape == (1, 3, 3, 1)


def test_files_have_one_or_three_channels(tmp_path):
    with pytest.raises(ValueError, match="1 or 3 channels. Received: a model of 4"):
        image_files.read_files([tmp_path / "none.png"], (8, 8, 4))
