import json

import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers import coco_files
from keras_vit.utils.warned import LeftOut
from tests.data.test_mask_frames import write_image


def write(path, **parts):
    content = {
        "categories": [{"id": 9, "name": "cafe\u0301"}, {"id": 4, "name": "tea"}],
        "images": [{"id": 0, "file_name": "./a.png", "width": 4, "height": 3}, {"id": 1, "file_name": "b.png"}],
        "annotations": [{"image_id": 1, "category_id": 9, "value": i} for i in range(3)],
    }
    path.write_text(json.dumps(content | parts))
    return path


def row(entry, names):
    return None if entry["value"] == 1 else (names[entry["category_id"]], entry["value"])


def test_rows_are_of_their_images_and_categories_in_the_order_of_their_ids(tmp_path):
    categories, images = coco_files.read(write(tmp_path / "a.json"), row)
    assert [(key, entry["name"]) for key, entry in categories.items()] == [(4, "tea"), (9, "caf\u00e9")]
    assert images == {"a.png": ([], (4, 3)), "b.png": ([("caf\u00e9", 0), ("caf\u00e9", 2)], None)}


def test_objects_are_made_smaller_as_they_are_read(tmp_path):
    def compact(entry):
        return entry | {"value": -entry["value"]} if "value" in entry else entry

    _, images = coco_files.read(write(tmp_path / "a.json"), row, compact)
    assert [value for _, value in images["b.png"][0]] == [0, -1, -2]


def test_crowds_are_zero_or_one():
    assert coco_files.is_crowd({"iscrowd": 1}) and not coco_files.is_crowd({})
    with pytest.raises(ValueError, match="iscrowd of segment 3 must be 0 or 1: 'no'"):
        coco_files.is_crowd({"iscrowd": "no", "id": 3}, "segment")


def test_a_file_of_nothing_but_crowds_is_refused(tmp_path):
    crowds = [{"image_id": 1, "category_id": 9, "value": i, "iscrowd": 1} for i in range(2)]
    with pytest.raises(ValueError, match="must have objects that are no crowds.*CVAT writes it.*Received: 2 crowds"):
        coco_files.read(write(tmp_path / "a.json", annotations=crowds), row)
    crowds[0]["iscrowd"] = 0
    assert len(coco_files.read(write(tmp_path / "a.json", annotations=crowds), row)[1]["b.png"][0]) == 1
    assert coco_files.read(write(tmp_path / "a.json", annotations=[]), row)[1]["b.png"][0] == []


def test_images_are_beside_the_file_or_in_a_folder(tmp_path):
    file = write(tmp_path / "annotations.json")
    assert coco_files.file_of(tmp_path) == file and coco_files.file_of(tmp_path / "none") is None
    for name in ("a", "b", "masks/c"):
        write_image(tmp_path / f"{name}.png", 1)
    found = coco_files.images_of(tmp_path, file, ["a.png", "b.png"], tmp_path / "masks")
    assert found == [str(tmp_path / "a.png"), str(tmp_path / "b.png")]
    with pytest.warns(LeftOut, match="Left out 1 images that annotations.json does not name"):
        coco_files.images_of(tmp_path, file, ["a.png", "b.png"])
    write_image(tmp_path / "images" / "a.png", 1)
    with pytest.raises(ValueError, match="must name images that exist. Received: '.*images/b.png'"):
        coco_files.images_of(tmp_path, file, ["a.png", "b.png"])
