import json
import pathlib

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.inspection import Inspected
from keras_vit.data.mask_frames import is_stored
from keras_vit.utils.images import mask_pixels
from tests import exiffiles

STORED = np.zeros((12, 20), "uint8")  # one object in the picture as it is stored:
STORED[2:5, 3:9] = 1


def write_image(path, number, size=(20, 12)):
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = number
    Image.new("RGB", size).save(path, exif=exif)


def test_the_size_decides_where_it_can():
    cases = {  # orientation, size of the image as it is seen, size of its mask: whether this is as stored
        (1, (12, 20), (12, 20)): False,
        (6, (12, 20), (12, 20)): False,
        (6, (12, 20), (20, 12)): True,
        (6, (12, 20), (9, 9)): False,
        (6, (12, 20), None): None,
        (6, (12, 12), (12, 12)): None,
        (3, (12, 20), (12, 20)): None,
        (3, (12, 20), (20, 12)): None,
        (1, (12, 20), None): False,
    }
    found = {case: is_stored(case[2], Inspected(None, b"", case[1], case[0])) for case in cases}
    assert found == cases


@pytest.mark.parametrize("number", range(5, 9))
@pytest.mark.parametrize("stored", [True, False])
def test_masks_and_boxes_are_turned_with_their_image(number, stored, tmp_path):
    seen = exiffiles.upright(number, STORED)
    mask = STORED if stored else seen
    write_image(tmp_path / "masks/images/a.jpg", number)
    (tmp_path / "masks/masks").mkdir()
    Image.fromarray(mask).save(tmp_path / "masks/masks/a.png")
    source = sources.load(Data(source=f"folder:{tmp_path}", train="masks"), "masks", ("segmentation_masks",))
    held = source.targets["segmentation_masks"][0]
    np.testing.assert_array_equal(
        mask_pixels(held if isinstance(held, bytes) else pathlib.Path(held).read_bytes()), seen
    )
    assert source.sizes()[0][1] == seen.shape

    rows, columns = np.nonzero(mask)
    box = [int(v) for v in (columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1)]
    write_image(tmp_path / "boxes/images/a.jpg", number)
    entry = {"id": 1, "file_name": "a.jpg", "width": mask.shape[1], "height": mask.shape[0]}
    objects = [{"image_id": 1, "category_id": 1, "bbox": box}]
    content = {"images": [entry], "annotations": objects, "categories": [{"id": 1, "name": "cell"}]}
    (tmp_path / "boxes/annotations.json").write_text(json.dumps(content))
    source = sources.load(Data(source=f"folder:{tmp_path}", train="boxes"), "boxes", ("bounding_boxes",))
    rows, columns = np.nonzero(seen)
    shares = np.array([rows.min(), columns.min(), rows.max() + 1, columns.max() + 1]) / np.tile(seen.shape, 2)
    np.testing.assert_allclose(source.targets["bounding_boxes"][0, 0], [*shares, 0], atol=1e-6)


@pytest.mark.parametrize("kind", ["masks", "boxes"])
def test_what_nothing_decides_is_one_error_that_says_exif(kind, tmp_path):
    for name, number in {"a": 1, "b": 6}.items():
        write_image(tmp_path / "all" / "images" / f"{name}.jpg", number, (12, 12))
        (tmp_path / "all" / "masks").mkdir(exist_ok=True)
        Image.new("L", (12, 12), 1).save(tmp_path / "all" / "masks" / f"{name}.png")
    boxes = [{"image_id": i, "category_id": 1, "bbox": [2, 3, 4, 5]} for i in (1, 2)]
    entries = [{"id": i, "file_name": f"{name}.jpg", "width": 12, "height": 12} for i, name in ((1, "a"), (2, "b"))]
    content = {"images": entries, "annotations": boxes, "categories": [{"id": 1, "name": "cell"}]}
    target = {"masks": "segmentation_masks", "boxes": "bounding_boxes"}[kind]
    if kind == "boxes":
        (tmp_path / "all" / "annotations.json").write_text(json.dumps(content))
    load = lambda **settings: sources.load(Data(source=f"folder:{tmp_path / 'all'}", **settings), "all", (target,))  # noqa: E731
    with pytest.raises(ValueError, match=r"b.jpg \(its (mask|boxes): the image has EXIF orientation 6, and"):
        load()
    with pytest.warns(UserWarning, match="EXIF orientation 6"):
        assert len(load(bad_images="skip")) == 1
