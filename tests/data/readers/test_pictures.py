import io

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from PIL import Image

from keras_vit.data.augment.masks import gray_png
from keras_vit.data.readers import pictures
from keras_vit.utils.depth_maps import npy_bytes

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype("uint8")


def png(pixels, **how):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", **how)
    return file.getvalue()


def test_an_image_is_pixels_or_a_file(tmp_path):
    data = png(PIXELS)
    (tmp_path / "a.png").write_bytes(data)
    hub = {"bytes": data, "path": None}, {"bytes": None, "path": str(tmp_path / "a.png")}
    for value in (data, *hub, tmp_path / "a.png", np.array(data, object)):
        assert pictures.image(value, 3) == data
    np.testing.assert_array_equal(pictures.image(Image.fromarray(PIXELS), 3), PIXELS)
    assert pictures.image(Image.fromarray(PIXELS[..., 0]), 3).shape == (5, 7, 3)  # huggingface/datasets, issue 4112
    assert pictures.image(Image.fromarray(PIXELS).convert("RGBA"), 1).shape == (5, 7, 1)
    assert pictures.image(PIXELS[..., 0], 1).shape == (5, 7, 1)
    assert "There is no file" in pictures.image("a\nb", 3)
    for wrong in (3, None, PIXELS[None], PIXELS > 3):
        with pytest.raises(ValueError, match="An image must be an array"):
            pictures.image(wrong, 3)


def test_images_of_one_size_are_pixels_and_others_files():
    same, readable = pictures.together([PIXELS, PIXELS.astype("float32")])
    assert same.dtype == np.uint8 and same.shape == (2, 5, 7, 3) and list(readable) == [0, 1]
    assert pictures.together([PIXELS / 2.0] * 2)[0].dtype == np.float32
    files, _ = pictures.together([PIXELS, PIXELS[:3], png(PIXELS)])
    assert files.dtype == object and np.array_equal(np.asarray(Image.open(io.BytesIO(files[1]))), PIXELS[:3])
    for items, message in (
        ([PIXELS / 255, PIXELS / 255], "values from 0 to 1; multiply by 255"),
        ([PIXELS / 255, PIXELS[:3] / 255], "multiply by 255"),
        ([PIXELS / 2, PIXELS[:3] / 2], "Images of different sizes must be whole numbers"),
        ([PIXELS[..., :2], PIXELS], "in one or three channels.* Received: shape=\\(5, 7, 2\\)"),
        ([PIXELS * np.nan] * 2, "Received: values from nan to nan"),
        ([b"no image", png(PIXELS)], r"1 of 2 images cannot be read(.|\n)*image 0 \(is not a PNG"),
        ([png(PIXELS)[:60]], "1 of 1 images cannot be read"),
    ):
        with pytest.raises(ValueError, match=message):
            pictures.together(items)
    with pytest.warns(UserWarning, match="Left out 1 of 2 images"):
        files, readable = pictures.together([b"", png(PIXELS)], "skip")
    assert readable == [1] and len(files) == 1


def test_masks():
    values = PIXELS[..., 0] % 4
    palette = Image.fromarray(values).convert("P")
    two_bits = io.BytesIO()
    palette.save(two_bits, "PNG", bits=2)
    for mask in (values, values[..., None].astype("int64"), png(values), Image.fromarray(values), two_bits.getvalue()):
        np.testing.assert_array_equal(pictures.mask(mask), values)
    for wrong in (PIXELS, values / 2, values.astype(int) - 1, png(PIXELS), Image.fromarray(PIXELS)):
        with pytest.raises(ValueError, match="A mask must be"):
            pictures.mask(wrong)
    given = ("A mask", gray_png)
    assert pictures.maps_together([values] * 2, np.stack([PIXELS] * 2), *given).shape == (2, 5, 7, 1)
    files = np.array([png(PIXELS), png(PIXELS[:3])], object)
    made = pictures.maps_together([values, values[:3]], files, *given)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(made[1]))), values[:3])
    with pytest.raises(ValueError, match=r"the size of its image, \(3, 7\). Received: \(5, 7\) of image 1"):
        pictures.maps_together([values] * 2, files, *given)


def test_depth(tmp_path):
    values = PIXELS[..., 0] + 0.5
    np.save(tmp_path / "a.npy", values)
    sixteen = Image.fromarray((100 * values).astype("uint16"))
    sixteen.save(tmp_path / "a.png")
    for depth in (values, values[..., None], npy_bytes(values), tmp_path / "a.npy", str(tmp_path / "a.npy")):
        np.testing.assert_array_equal(pictures.depth(depth), values.astype("float32"))
    for depth in (sixteen, tmp_path / "a.png", (tmp_path / "a.png").read_bytes()):
        np.testing.assert_array_equal(pictures.depth(depth), np.floor(100 * values).astype("float32"))
    files = np.array([png(PIXELS), png(PIXELS)], object)
    made = pictures.maps_together([values] * 2, files, "A depth map", npy_bytes)
    np.testing.assert_array_equal(pictures.depth(made[1]), values.astype("float32"))
    with pytest.raises(ValueError, match="A depth map must have the size of its image"):
        pictures.maps_together([values[:2]] * 2, files, "A depth map", npy_bytes)
