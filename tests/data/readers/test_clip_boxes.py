"""Clips with boxes: what is read of COCO's file beside them, and what is refused."""

import copy
import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.clip_source import Sampling
from keras_vit.data.readers import clip_folder
from keras_vit.utils.warned import LeftOut
from tests.boxed import NAMES, SIDE, arrays, clips_with_boxes, moving_square, table
from tests.checkpoints.helpers import unexpected
from tests.clipfiles import animated

SAMPLING = Sampling(4, centered=True)


def load(folder, split="all", **options):
    return sources.load(Data(source=f"folder:{folder}", **options), split, ("bounding_boxes",), clips=SAMPLING)


def test_boxes_of_clips(tmp_path):
    clips_with_boxes(tmp_path / "clips")
    found = load(tmp_path / "clips")
    assert found.class_names == NAMES and len(found) == 12 and found.files and found.digests.shape == (12, 32)
    for path, [box] in zip(found.images, found.targets["bounding_boxes"]):
        number = int(path.rpartition("/")[2].removesuffix(".gif"))
        _, kind, (x, y, wide, high) = moving_square(number)
        expected = [y / SIDE, x / SIDE, (y + high) / SIDE, (x + wide) / SIDE, kind] if number < 11 else [0, 0, 0, 0, -1]
        np.testing.assert_allclose(box, expected, atol=1e-6)
    assert len(load(tmp_path / "clips", "all[:50%]")) == 6


@pytest.mark.parametrize("place", ["clips", "images"])
def test_clips_may_lie_in_a_folder_of_their_own(tmp_path, place):
    for split in ("train", "test"):
        files = clips_with_boxes(tmp_path / split, 4)
        (tmp_path / split / place).mkdir()
        for file in files:
            file.rename(tmp_path / split / place / file.name)
        animated(tmp_path / split / place / "more.gif", moving_square(9)[0])
        with pytest.warns(LeftOut, match="1 clips that annotations.json does not name"):
            found = load(tmp_path, split)
        assert len(found) == 4 and all(f"/{split}/{place}/" in path for path in found.images)


def test_what_is_refused(tmp_path):
    files, good = clips_with_boxes(tmp_path / "clips"), table()

    def changed(change):
        content = copy.deepcopy(good)
        change(content)
        (tmp_path / "clips" / "annotations.json").write_text(json.dumps(content))
        return load(tmp_path / "clips")

    def box(*sides):
        return lambda content: content["annotations"][3].update(bbox=[*sides])

    def named(name):
        return lambda content: content["images"][3].update(file_name=name)

    def shares(content):
        for each in content["annotations"]:
            each["bbox"] = [side / SIDE for side in each["bbox"]]

    calls = [
        (
            shares,
            "Boxes must be in pixels. Received: numbers up to 0.[0-9]+ for .*, which look like shares of the image",
        ),
        (named("gone.gif"), r"must name clips that exist. Received: '.*gone.gif'"),
        (named("../3.gif"), r"must name clips that exist. Received: '.*3.gif'"),
        (named("3.jpg"), r"must name clips \(.gif, .*Received: 1 other files, such as '3.jpg'"),
        (named("2.gif"), "must name each image once"),
        (box(30, 2, 8, 8), "1 boxes are wrong. .*\n.*3.gif, right: it is outside the image of 24 x 24"),
        (box(2, 2, 0, 8), "1 boxes are wrong. .*\n.*3.gif, right: it has no area"),
        (box(2, 2, 8), "annotation 3 has no box of four numbers"),
        (lambda content: content["images"][3].update(width=99), "its boxes are in 99 x 24 pixels, .*has 24 x 24"),
        (lambda content: content["annotations"][3].update(category_id=9), "no JSON of COCO"),
        (lambda content: content.update(images=[], annotations=[]), "must name clips .* Received: none"),
    ]
    for change, text in calls:
        with pytest.raises(ValueError, match=text):
            changed(change)
    changed(lambda content: None)
    with pytest.raises(ValueError, match="groups alone, .*Received: data.columns={'labels': 'x'}"):
        load(tmp_path / "clips", columns={"labels": "x"})
    files[3].write_bytes(b"x")
    with pytest.raises(
        ValueError, match=r"1 of 12 clips cannot be read, or have wrong boxes. .*\n.*3.gif \(cannot be read"
    ):
        load(tmp_path / "clips")
    with pytest.warns(LeftOut, match="1 of 12 clips, which cannot be read, or have wrong boxes"):
        assert len(load(tmp_path / "clips", bad_images="skip")) == 11
    nameless = [{**each, "name": each["name"] * (each["id"] != 1)} for each in good["categories"]]
    (tmp_path / "clips" / "annotations.json").write_text(json.dumps({**good, "categories": nameless}))
    with pytest.raises(
        ValueError, match=r"5 of 12 clips cannot be read, or have wrong boxes. .*\n.*1.gif \(its boxes: "
    ):
        load(tmp_path / "clips")
    with pytest.warns(LeftOut, match="5 of 12 clips, which cannot be read, or have wrong boxes"):
        assert len(load(tmp_path / "clips", bad_images="skip")) == 7
    (tmp_path / "clips" / "annotations.json").unlink()
    with pytest.raises(ValueError, match=r"must contain 'annotations.json' \(COCO\), whose images are clips.*0.gif"):
        load(tmp_path / "clips")
    with pytest.raises(ValueError, match="Clips are read from .*Received: data.source='digits'"):
        sources.load(Data(source="digits"), "all", ("bounding_boxes",), clips=SAMPLING)


def test_images_are_no_clips(tmp_path):
    clips_with_boxes(tmp_path / "stills", 3, ".png", table(3, ".png"))
    for i in range(3):
        Image.fromarray(moving_square(i)[0][0]).save(tmp_path / "stills" / f"{i}.png")
    with pytest.raises(ValueError, match="images are for Detect. Received: 3 files of one frame"):
        load(tmp_path / "stills")


def test_arrays():
    clips, boxes = arrays(6)
    shape = (SIDE, SIDE, 4 * 3)
    found = clip_folder.from_arrays((clips, boxes), SAMPLING, shape, NAMES, ("bounding_boxes",))
    np.testing.assert_array_equal(found.targets["bounding_boxes"], boxes)
    wide = np.repeat(clips, 2, axis=3)  # twice as wide as high
    pixels = {"boxes": [[[2, 3, 4, 6]]] * 6, "labels": [[1]] * 6, "bounding_box_format": "xyxy"}
    found = clip_folder.from_arrays((wide, pixels), SAMPLING, (SIDE, 2 * SIDE, 12), NAMES, ("bounding_boxes",))
    expected = [3 / SIDE, 2 / SIDE / 2, 6 / SIDE, 4 / SIDE / 2, 1]
    np.testing.assert_allclose(found.targets["bounding_boxes"][0, 0], expected, rtol=1e-6)
    outside = boxes.copy()
    outside[2, 0, 3] = 1.5
    calls = [
        (clips, r"must be a pair \(clips, bounding_boxes\). Received: ndarray"),
        ((clips, boxes[:5]), r"of the shape \(6, most, 5\)"),
        ((clips, outside), "right <= 1, .*Received: .* of image 2"),
        ((clips, boxes + [0, 0, 0, 0, 2]), "a class from 0 to 1"),
    ]
    made = [
        (lambda a=a: clip_folder.from_arrays(a, SAMPLING, shape, NAMES, ("bounding_boxes",)), text) for a, text in calls
    ]
    assert not unexpected(made)
