import warnings

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import inspection, sources
from keras_vit.utils import instance_maps
from keras_vit.utils.warned import LeftOut
from tests import exiffiles
from tests.data.augment.test_masks import few_bits
from tests.data.test_mask_frames import write_image

NUMBERS = np.zeros((12, 20), "uint8")
NUMBERS[2:5, 3:9], NUMBERS[7:9, :4], NUMBERS[7:9, 10:], NUMBERS[0, 0] = 7, 9, 7, 200
EXPECTED = np.vectorize({0: -1, 7: 1, 9: 2, 200: 3}.get)(NUMBERS)  # an object may be of several parts


def png(path, values, palette=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values)
    if palette:
        image.putpalette(palette)
    image.save(path)


def write(folder, values=NUMBERS, **settings):
    """Writes two images, `a` with objects and `b` without."""
    for name, mask in (("a", values), ("b", np.zeros((12, 20), "uint8"))):
        write_image(folder / "images" / f"{name}.jpg", 1, (20, 12))
        png(folder / "masks" / f"{name}.png", mask, **(settings if name == "a" else {}))
    return folder


def load(folder, **settings):
    return sources.load(Data(source=f"folder:{folder}", **settings), "all", ("instance_masks",))


def maps(source):
    return {path[-5]: instance_maps.pixels(item) for path, item in zip(source.images, source.targets["instance_masks"])}


@pytest.mark.parametrize(
    "values, settings",
    [
        (NUMBERS, {}),
        (NUMBERS.astype("uint16") * 300, {}),
        (NUMBERS, {"palette": list(range(255, -1, -1)) * 3}),
    ],
)
def test_values_are_objects_of_one_class(values, settings, tmp_path):
    source = load(write(tmp_path, values, **settings))
    assert source.class_names == () and source.stuff == () and len(source) == 2
    np.testing.assert_array_equal(maps(source)["a"], EXPECTED)
    assert (maps(source)["b"] == -1).all()


@pytest.mark.parametrize("colors", [0, 3])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_masks_of_few_bits_are_not_stretched(bits, colors, tmp_path):
    data, values = few_bits(bits, colors)
    for name in "ab":
        write_image(tmp_path / "images" / f"{name}.png", 1, values.shape[::-1])
        png(tmp_path / "masks" / f"{name}.png", values.astype("uint8"))
    (tmp_path / "masks" / "a.png").write_bytes(data)
    with warnings.catch_warnings(action="ignore"):  # of one bit, which is one object
        found = maps(load(tmp_path))["a"]
    np.testing.assert_array_equal(found, np.where(values == 0, -1, values))


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda f: png(f / "masks/a.png", np.zeros((12, 20, 3), "uint8")),
         "gray with 16 bits or fewer, or a palette. Received: '.*a.png', PNG of mode 'RGB'"),
        (lambda f: png(f / "masks/a.png", np.zeros((12, 20, 4), "uint8")), "PNG of mode 'RGBA'"),
        (lambda f: png(f / "masks/a.tif", np.zeros((12, 20), "float32")), r"must be PNG files. Received: .*a.tif"),
        (lambda f: np.save(f / "masks/a.npy", np.zeros((12, 20))), r"Masks must be PNG files. Received: '.*a.npy'"),
        (lambda f: png(f / "masks/a.png", np.zeros((20, 12), "uint8")),
         "A mask must have the size of its image. Received: '.*a.png' of 12 x 20 pixels for an image of 20 x 12"),
        (lambda f: (f / "masks/a.png").write_bytes(b"no image"), r"(?s)1 of 2.*a.jpg \(its mask: is not a PNG"),
        (lambda f: (f / "images/a.jpg").write_bytes(b"no image"), r"(?s)1 of 2.*a.jpg \(is not a PNG"),
        (lambda f: (f / "masks/a.png").rename(f / "masks/c.png"), "must have a mask.*'.*a.jpg' without mask"),
        (lambda f: png(f / "masks/a.PNG", NUMBERS), "Each image must have one mask. Received: '.*a.PNG', '.*a.png'"),
        (lambda f: write_image(f / "images/a.png", 1), "of its own, the one of its mask. Received: .*a.jpg.*a.png"),
        (lambda f: (f / "masks/a.png").write_bytes((f / "masks/a.png").read_bytes()[:60]), r"(?s)1 of.*a.jpg \(its ma"),
        (lambda f: (f / "masks").rename(f / "m"),
         "'annotations.json' .COCO., 'panoptic.json' and .* or '.*' 'data.yaml' .YOLO.. Received: images, m"),
    ],
)  # fmt: skip
def test_one_error_names_the_file(change, said, tmp_path):
    change(write(tmp_path))
    with pytest.raises(ValueError, match=said):
        load(tmp_path)


def test_what_cannot_be_read_may_be_left_out(tmp_path):
    (write(tmp_path) / "masks" / "a.png").write_bytes(b"no image")
    with pytest.warns(LeftOut, match="Left out 1 of 2 images"):
        assert len(load(tmp_path, bad_images="skip")) == 1


def test_a_thousand_objects_are_a_sentence(tmp_path):
    values = np.arange(1200, dtype="uint16").reshape(30, 40)
    for name in "ab":
        write_image(tmp_path / "images" / f"{name}.png", 1, (40, 30))
        png(tmp_path / "masks" / f"{name}.png", np.minimum(values, 999))
    assert maps(load(tmp_path))["a"].max() == 999
    png(tmp_path / "masks" / "a.png", values)
    with pytest.raises(ValueError, match="a.png .its mask: An image must have at most 999 objects.*1199 of class 0"):
        load(tmp_path)


def test_masks_that_say_only_where_objects_are_warn(tmp_path):
    with pytest.warns(UserWarning, match="None of 2 masks in '.*masks' has more than one object.*a value of its own"):
        load(write(tmp_path, (NUMBERS > 0) * np.uint8(255)))
    with warnings.catch_warnings(action="error"):
        load(write(tmp_path))


@pytest.mark.parametrize("number", [5, 6, 7, 8])
@pytest.mark.parametrize("stored", [True, False])
def test_masks_are_turned_with_their_image(number, stored, tmp_path):
    write(tmp_path, NUMBERS if stored else np.ascontiguousarray(exiffiles.upright(number, NUMBERS)))
    write_image(tmp_path / "images" / "a.jpg", number, (20, 12))
    np.testing.assert_array_equal(maps(load(tmp_path))["a"] != -1, exiffiles.upright(number, NUMBERS) > 0)


def test_what_nothing_decides_is_an_error(tmp_path):
    write(tmp_path)
    write_image(tmp_path / "images" / "b.jpg", 3, (20, 12))
    assert len(load(tmp_path)) == 2  # without objects
    write_image(tmp_path / "images" / "a.jpg", 3, (20, 12))
    with pytest.raises(ValueError, match="a.jpg .its mask: the image has EXIF orientation 3, and nothing says"):
        load(tmp_path)


def test_contents_are_of_images_and_masks(tmp_path):
    before = inspection.contents(train=load(write(tmp_path)))
    assert inspection.contents(train=load(write(tmp_path))) == before
    changed = NUMBERS.copy()
    changed[11, 11] = 7
    assert inspection.contents(train=load(write(tmp_path, changed))) != before
