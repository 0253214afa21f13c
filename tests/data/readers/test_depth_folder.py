import shutil

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from tests.depths import folder


def load(path, split="all", **options):
    return sources.load(Data(source=f"folder:{path}", **options), split, ("depths",))


def test_pairs_are_found(tmp_path):
    source = load(folder(tmp_path / "a"), "all[:50%]")
    assert len(source) == 6 and source.targets["depths"].shape == (6,)
    for image, depth in zip(source.images, source.targets["depths"]):
        assert image.rpartition("/")[2].split(".")[0] == depth.rpartition("/")[2].split(".")[0]
    shutil.copytree(tmp_path / "a", tmp_path / "b" / "train")
    assert len(load(tmp_path / "b", "train")) == 12


def test_what_does_not_fit_is_named(tmp_path):
    path = folder(tmp_path / "a")

    def refused(pattern, **options):
        with pytest.raises(ValueError, match=pattern) as error:
            load(path, **options)
        return str(error.value)

    (path / "depth" / "0.npy").rename(path / "0.npy")
    refused("Every image must have a depth map, depth/NAME.png or depth/NAME.npy. Received: .*images/0.png' without")
    np.save(path / "depth" / "0.npy", np.ones((5, 7)))
    refused("size of its image. Received: .*0.npy' of 7 x 5 pixels for an image of 24 x 20")
    for values, fault in ((np.zeros((20, 24)), "nothing but holes"), (np.full((20, 24), -2.0), "at least 0")):
        np.save(path / "depth" / "0.npy", values)
        assert "its depth: " in refused(f"1 of 12 images cannot be used.*(\n.*)*{fault}")
        with pytest.warns(UserWarning, match="1 of 12 images"):
            assert len(load(path, bad_images="skip")) == 11
    shutil.copy(path / "0.npy", path / "depth" / "0.npy")
    Image.new("I;16", (24, 20), 7).save(path / "depth" / "0.png")
    refused("Each image must have one depth map. Received: .*0.npy', .*0.png'|.*0.png', .*0.npy'")
    (path / "depth" / "0.png").rename(path / "depth" / "99.png")
    refused("Every depth map must have an image of its name. Received: .*99.png' without")
    (path / "depth" / "99.png").rename(path / "depth" / "99.jpg")
    refused("Depth maps must be PNG or .npy files. Received: .*99.jpg'")
    shutil.rmtree(path / "depth")
    refused("must contain the folders 'images' and 'depth'. Received: no 'depth'")


def test_turned_images_are_refused(tmp_path):
    path = folder(tmp_path / "a")
    with Image.open(path / "images" / "1.png") as image:
        exif = image.getexif()
        exif[0x0112] = 6
        image.save(path / "images" / "1.png", exif=exif)
    with pytest.raises(ValueError, match="the image has an EXIF orientation"):
        load(path)
