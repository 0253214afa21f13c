import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import inspection, sources
from keras_vit.utils import instance_maps
from keras_vit.utils.warned import LeftOut
from tests import exiffiles
from tests.data.test_mask_frames import write_image

SIZE = (30, 40)  # height, width
CATEGORIES = [
    {"id": 200, "name": "sky", "isthing": 0},
    {"id": 7, "name": "person", "isthing": 1},
    {"id": 30, "name": "dog", "isthing": 1},
]
NUMBERS = np.zeros(SIZE, "int64")
NUMBERS[:10], NUMBERS[12:20, :9], NUMBERS[12:20, 9:20], NUMBERS[25:, 30:], NUMBERS[:3, :3] = 1, 300, 70000, 5, 2**24 - 1
SEGMENTS = [
    {"id": 70000, "category_id": 7, "iscrowd": 0},
    {"id": 1, "category_id": 200},
    {"id": 300, "category_id": 7, "iscrowd": 0},
    {"id": 5, "category_id": 30, "iscrowd": 1},
    {"id": 2**24 - 1, "category_id": 200, "iscrowd": 0},
]
EXPECTED = {0: -1, 1: 2000, 300: 1, 70000: 2, 5: -3, 2**24 - 1: 2000}  # classes by ids: person, dog, sky


def png(path, numbers, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    bands = np.stack([numbers % 256, numbers // 256 % 256, numbers // 65536], -1).astype("uint8")
    Image.fromarray(bands).convert(mode).save(path)


def write(folder, numbers=NUMBERS, segments=SEGMENTS, images="images", **change):
    """Writes an image with segments, `b`, and one without any, `a`."""
    for name, values in (("a", np.zeros(SIZE, "int64")), ("b", numbers)):
        write_image(folder / images / f"{name}.jpg", 1, SIZE[::-1])
        png(folder / "panoptic" / f"{name}_segments.png", values)
    content = {
        "categories": CATEGORIES,
        "images": [{"id": i, "file_name": f"{name}.jpg", "width": 40, "height": 30} for i, name in enumerate("ab")],
        "annotations": [
            {"image_id": 1, "file_name": "b_segments.png", "segments_info": segments},
            {"image_id": 0, "file_name": "a_segments.png", "segments_info": []},
        ],
    }
    (folder / "panoptic.json").write_text(json.dumps(content | change))
    return folder


def load(folder, split="all", **settings):
    return sources.load(Data(source=f"folder:{folder}", **settings), split, ("instance_masks",))


def maps(source):
    return {path[-5]: instance_maps.pixels(item) for path, item in zip(source.images, source.targets["instance_masks"])}


@pytest.mark.parametrize("images", ["images", ""])
def test_segments_are_numbered_by_class_and_regions_are_one(images, tmp_path):
    source = load(write(tmp_path / "val", images=images).parent, "val")
    assert source.class_names == ("person", "dog", "sky") and source.stuff == ("sky",) and len(source) == 2
    found = maps(source)
    np.testing.assert_array_equal(found["b"], np.vectorize(EXPECTED.get)(NUMBERS))
    assert (found["a"] == -1).all() and all(isinstance(item, bytes) for item in source.targets["instance_masks"])


def test_classes_in_another_order_are_followed(tmp_path):
    source = load(write(tmp_path))
    moved = sources.aligned(source, ("sky", "dog", "person"))
    expected = {-1: -1, 2000: 0, 1: 2001, 2: 2002, -3: -3}
    np.testing.assert_array_equal(maps(moved)["b"], np.vectorize(expected.get)(maps(source)["b"]))
    assert moved.stuff == ("sky",)


@pytest.mark.parametrize(
    "change, said",
    [
        (dict(segments=SEGMENTS[1:]), r"b.jpg .its mask: its PNG has the number 70000, which segments_info has not"),
        (dict(numbers=np.zeros((30, 41), int), segments=[]), "_segments.png' of 41 x 30 pixels for an image of 40"),
        (dict(categories=CATEGORIES[1:]), "is no JSON of COCO: it has no 200 where one must be"),
        (dict(categories=[{"id": 7, "name": "person"}, *CATEGORIES]), "two of its categories have the id 7"),
        (dict(categories=[{"id": 2, "name": "dog", "isthing": 0}, *CATEGORIES]), "Received: 'dog', of both kinds"),
        (dict(categories=[{"id": 2, "name": "cat"}, *CATEGORIES]), "isthing, 0 or 1, of 'cat'. Received: None"),
        (dict(segments=[*SEGMENTS, SEGMENTS[0]]), "must be different whole numbers from 1 to 16777215: 70000"),
        (dict(segments=[{"id": 0, "category_id": 7}]), "different whole numbers from 1 to 16777215: 0"),
        (dict(segments=[{"id": 1.0, "category_id": 7}]), "1.0"),
        (dict(segments=[{"id": 1, "category_id": 7, "iscrowd": 3}]), "iscrowd of segment 1 must be 0 or 1: 3"),
        (dict(annotations=[]), "(?s)2 of 2 images.*a.jpg .its mask: panoptic.json has no annotation of it"),
        (dict(annotations=[{"image_id": 0, "file_name": "a_segments.png", "segments_info": []}] * 2),
         "must have one annotation of each image. Received: several of '.*a.jpg'"),
        (dict(annotations=[{"image_id": i, "file_name": "a_segments.png", "segments_info": []} for i in (0, 1)]),
         "must name a PNG of each image. Received: 'a_segments.png' of several"),
        (dict(annotations=[{"image_id": i, "file_name": f"{i}.png", "segments_info": []} for i in (0, 1)]),
         "must name PNGs that exist. Received: '.*panoptic/0.png', and 1 more"),
        (dict(annotations=[{"image_id": 0, "file_name": "../panoptic/a_segments.png", "segments_info": []}]),
         "must name PNGs that exist"),
        (dict(annotations=[{"image_id": 0, "file_name": 3, "segments_info": []}]), "names of files must be texts: 3"),
        (dict(annotations=[{"image_id": 0, "file_name": "a_segments.png"}]), "it has no 'segments_info'"),
        (dict(segments=[SEGMENTS[0] | {"category_id": 8}]), "panoptic.json' is no JSON of COCO: it has no 8 where one"),
    ],
)  # fmt: skip
def test_one_error_says_what_is_wrong(change, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        load(write(tmp_path, **change))


@pytest.mark.parametrize(
    "fault, said",
    [
        ("L", "a PNG of segments must be of red, green and blue, 8 bits each. Received: PNG of mode 'L'"),
        ("P", "Received: PNG of mode 'P'"),
        ("RGBA", "Received: PNG of mode 'RGBA'"),
        (None, "is not a PNG, JPEG"),
    ],
)
def test_other_files_are_a_fault_of_their_image(fault, said, tmp_path):
    path = write(tmp_path) / "panoptic" / "a_segments.png"
    png(path, NUMBERS, fault) if fault else path.write_bytes(b"no image")
    with pytest.raises(ValueError, match=f"(?s)1 of 2 images cannot be used.*a.jpg .its mask: .*{said}"):
        load(tmp_path)
    with pytest.warns(LeftOut, match="Left out 1 of 2 images"):
        assert len(load(tmp_path, bad_images="skip")) == 1


def test_a_segment_without_a_pixel_is_an_error_or_left_out(tmp_path):
    write(tmp_path, segments=[*SEGMENTS, {"id": 9, "category_id": 30}])
    with pytest.raises(ValueError, match="(?s)1 objects are wrong.*b.jpg, dog: no pixel has its id, 9"):
        load(tmp_path)
    with pytest.warns(LeftOut, match="Left out 1 objects"):
        found = maps(load(tmp_path, bad_images="skip"))["b"]
    np.testing.assert_array_equal(found, np.vectorize(EXPECTED.get)(NUMBERS))


def test_a_thousand_objects_of_a_class_are_a_sentence(tmp_path):
    numbers = np.arange(1200).reshape(SIZE)
    many = [{"id": i, "category_id": 7} for i in range(1, 1200)]
    with pytest.raises(ValueError, match="b.jpg .its mask: An image must have at most 999 objects.*1199 of class 0"):
        load(write(tmp_path, numbers, many))
    regions = [{"id": i, "category_id": 200} for i in range(1, 1200)]
    assert {*np.unique(maps(load(write(tmp_path, numbers, regions)))["b"])} == {-1, 2000}


@pytest.mark.parametrize("stored", [True, False])
def test_segments_are_turned_with_their_image(stored, tmp_path):
    write(tmp_path, NUMBERS if stored else exiffiles.upright(6, NUMBERS))
    write_image(tmp_path / "images" / "b.jpg", 6, SIZE[::-1])
    expected = exiffiles.upright(6, np.vectorize(EXPECTED.get)(NUMBERS))
    np.testing.assert_array_equal(maps(load(tmp_path))["b"], expected)


def test_contents_are_of_images_segments_and_classes(tmp_path):
    before = inspection.contents(train=load(write(tmp_path)))
    assert inspection.contents(train=load(write(tmp_path))) == before
    changed = NUMBERS.copy()
    changed[11, 11] = 1
    assert inspection.contents(train=load(write(tmp_path, changed))) != before
    other = [SEGMENTS[0] | {"category_id": 30}, *SEGMENTS[1:]]
    assert inspection.contents(train=load(write(tmp_path, segments=other))) != before


def test_two_files_of_objects_are_refused(tmp_path):
    (write(tmp_path) / "annotations.json").write_text("{}")
    with pytest.raises(ValueError, match="must have one file of objects.*Received: annotations.json, panoptic.json"):
        load(tmp_path)
