"""Pictures of Hugging Face's library, which keeps most of Pillow's modes as TIFF, and labels that are missing."""

import io

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Classify, Data, Depth, Segment
from keras_vit.data import sources

SHAPE = (8, 8, 1)
PIXELS = np.random.default_rng(0).integers(0, 256, (4, *SHAPE)).astype("uint8")


def read(value, task=None):
    task = Classify() if task is None else task
    return sources.of_caller(value, Data(), task, SHAPE, (), lambda: task.classes or tuple("0123"))


def tiff(picture):
    """As Hugging Face's library keeps Pillow images of most modes."""
    file = io.BytesIO()
    picture.save(file, "TIFF")
    return {"bytes": file.getvalue(), "path": None}


@pytest.mark.parametrize("mode", ["P", "CMYK", "I;16"])
def test_pictures_that_hugging_face_keeps_as_tiff(mode):
    drawn = Image.fromarray(np.random.default_rng(1).integers(0, 256, (8, 8, 3)).astype("uint8"))
    gray = Image.fromarray((np.arange(64).reshape(8, 8) * 1000).astype("uint16"))
    picture = gray if mode == "I;16" else drawn.convert(mode)
    found = read([{"image": tiff(picture), "label": 1}, {"image": picture, "label": 1}])
    assert found.images.shape == (2, 8, 8, 1) and found.images[0].std() > 5
    np.testing.assert_array_equal(*found.images)


def test_masks_and_depth_that_hugging_face_keeps_as_tiff():
    classes = np.arange(64).reshape(8, 8).astype("uint8") % 3
    palette = Image.fromarray(classes, "L").convert("P")
    palette.putdata(classes.ravel().tolist())
    found = read([{"image": PIXELS[0], "mask": tiff(palette)}], Segment(classes=tuple("abc")))
    np.testing.assert_array_equal(found.targets["segmentation_masks"][0, ..., 0], classes)
    for kind in ("uint16", "float32"):
        values = (1 + np.arange(64).reshape(8, 8)).astype(kind)
        found = read([{"image": PIXELS[0], "depth": tiff(Image.fromarray(values))}], Depth())
        np.testing.assert_array_equal(found.targets["depths"][0, ..., 0], values)


def test_a_damaged_tiff_is_a_picture_that_cannot_be_read():
    whole = tiff(Image.new("CMYK", (8, 8)))["bytes"]
    rows_of = [{"image": {"bytes": data, "path": None}, "label": 0} for data in (whole, whole[:60])]
    with pytest.raises(ValueError, match=r"1 of 2 images cannot be read.*\n.*image 1 \(is a TIFF that cannot be read"):
        read(rows_of)


def test_a_label_that_is_missing_is_named_by_its_place():
    for values in (["a", "b", None], [0, 1, None], [0.0, 1.0, float("nan")]):
        with pytest.raises(ValueError, match="must have a label. Received: (None|nan) in example 2"):
            read([{"image": PIXELS[i], "label": value} for i, value in enumerate(values)])
