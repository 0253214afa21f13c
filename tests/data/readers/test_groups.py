import json
import unicodedata

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.readers import groups

BOX = {"id": 1, "category_id": 1, "bbox": [2, 2, 4, 4]}


def picture(path, value=0, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (9, 9), value).save(path)


def table(path, files, column="video"):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{file},v{i // 2}" for i, file in enumerate(files)]
    path.write_text("\n".join([f"file_name,{column}", *rows]), encoding="utf-8")


def class_folders(root):
    names = [f"{'ab'[i % 2]}/{i}.png" for i in range(8)]
    for i, name in enumerate(names):
        picture(root / name, (i, 0, 0))
    return names


def masks(root):
    for i in range(8):
        picture(root / f"images/{i}.png", (i, 0, 0))
        picture(root / f"masks/{i}.png", i % 2, "L")
    return [f"images/{i}.png" for i in range(8)]


def yolo(root):
    (root / "labels").mkdir(parents=True)
    for i in range(8):
        picture(root / f"images/{i}.png", (i, 0, 0))
        (root / f"labels/{i}.txt").write_text("0 0.5 0.5 0.2 0.2")
    (root / "data.yaml").write_text("names: [x]\ntrain: images\nval: images\n")
    return [f"images/{i}.png" for i in range(8)]


def coco(root):
    for i in range(8):
        picture(root / f"{i}.png", (i, 0, 0))
    images = [{"id": i, "file_name": f"{i}.png", "width": 9, "height": 9} for i in range(8)]
    boxes = [BOX | {"id": i, "image_id": i} for i in range(8)]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "x"}]}
    (root / "annotations.json").write_text(json.dumps(content))
    return [f"{i}.png" for i in range(8)]


def voc(root):
    for i in range(8):
        picture(root / f"images/{i}.png", (i, 0, 0))
        (root / "annotations").mkdir(exist_ok=True)
        (root / f"annotations/{i}.xml").write_text("<annotation></annotation>")
    return [f"images/{i}.png" for i in range(8)]


def depth(root):
    for i in range(8):
        picture(root / f"images/{i}.png", (i, 0, 0))
        (root / "depth").mkdir(exist_ok=True)
        np.save(root / f"depth/{i}.npy", np.full((9, 9), 1 + i, "float32"))
    return [f"images/{i}.png" for i in range(8)]


KINDS = {
    class_folders: "labels",
    masks: "segmentation_masks",
    yolo: "bounding_boxes",
    coco: "bounding_boxes",
    voc: "bounding_boxes",
    depth: "depths",
}


def load(root, kind, split="all", **columns):
    data = Data(source=f"folder:{root}", columns={"groups": "video", **columns})
    return sources.load(data, split.replace("all", "train") if kind is yolo else split, (KINDS[kind],))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_says_the_groups_of_images_whose_targets_are_elsewhere(tmp_path, kind):
    files = kind(tmp_path)
    table(tmp_path / "metadata.csv", files)
    whole = load(tmp_path, kind)
    assert len(whole) == 8 and len({*whole.groups.tolist()}) == 4
    parts = [load(tmp_path, kind, split) for split in ("all[:50%]", "all[50%:]")]
    assert not {*parts[0].groups.tolist()} & {*parts[1].groups.tolist()} and sum(map(len, parts)) == 8
    table(tmp_path / "metadata.csv", files[:-1])
    with pytest.raises(
        ValueError, match=r"the column 'video' of its group.*\n.*and 1 of 8 images without:\n .*7.png|7"
    ):
        load(tmp_path, kind)
    table(tmp_path / "metadata.csv", [*files, files[0]])
    with pytest.raises(ValueError, match="is in line 2 too"):
        load(tmp_path, kind)


def test_the_nearest_table_counts(tmp_path):
    masks(tmp_path)
    table(tmp_path / "images/metadata.csv", [f"{i}.png" for i in range(8)])
    found = load(tmp_path, masks)
    table(tmp_path / "metadata.csv", ["images/0.png"], "other")
    again = load(tmp_path, masks)
    assert found.groups.tolist() == again.groups.tolist()
    (tmp_path / "images/metadata.csv").unlink()
    with pytest.raises(ValueError, match="has no column 'video'"):
        load(tmp_path, masks)
    (tmp_path / "metadata.csv").unlink()
    with pytest.raises(ValueError, match="Received: no table, and 8 of 8 images without"):
        load(tmp_path, masks)


def test_names_of_either_form_and_another_column_of_files(tmp_path):
    for i, name in enumerate("ab"):
        picture(tmp_path / name / unicodedata.normalize("NFD", f"é{i}.png"))
    files = [unicodedata.normalize("NFC", f"{name}/é{i}.png") for i, name in enumerate("ab")]
    table(tmp_path / "metadata.csv", files)
    assert len(load(tmp_path, class_folders).groups) == 2
    text = (tmp_path / "metadata.csv").read_text("utf-8")
    (tmp_path / "metadata.csv").write_text(text.replace("file_name", "path"), "utf-8")
    assert len(load(tmp_path, class_folders, images="path").groups) == 2


def test_alone():
    assert groups.alone({"groups": "a"}) and groups.alone({"groups": "a", "images": "b"})
    assert not groups.alone({}) and not groups.alone({"groups": "a", "labels": "b"})
