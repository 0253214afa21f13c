"""Names that a Mac and other systems write in different forms belong together, in every kind of data."""

import json
import pathlib
import unicodedata

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Classify, Data
from keras_vit.data import sources
from keras_vit.data.memory import Source
from keras_vit.models.outputs import differ, read_labels

NFC, NFD = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
FORMS = [(NFC, NFD), (NFD, NFC)]
OBJECT = "<object><name>{}</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox></object>"


def picture(path, value=0, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (9, 9), value).save(path)


def load(root, target="labels", split="all", **columns):
    return sources.load(Data(source=f"folder:{root}", columns=columns or None), split, (target,))


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_class_folders(tmp_path, one, other):
    for split, form in (("train", one), ("val", other)):
        picture(tmp_path / split / form / "a.png", (9, 0, 0))
        picture(tmp_path / split / "tea" / "b.png", (0, 9, 0))
    found = [load(tmp_path, split=split) for split in ("train", "val")]
    assert [source.class_names for source in found] == [(NFC, "tea")] * 2
    picture(tmp_path / "train" / other / "c.png", (9, 9, 0))  # two folders of one class
    again = load(tmp_path, split="train")
    assert again.class_names == (NFC, "tea") and sorted(again.labels.tolist()) == [0, 0, 1]
    assert {pathlib.Path(path).name for path in again.images[again.labels == 0]} == {"a.png", "c.png"}


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_a_folder_and_a_split_are_asked_for_in_another_form(tmp_path, one, other):
    for name in ("a", "b"):
        picture(tmp_path / one / one / name / "x.png")
    assert len(load(tmp_path / other, split=other)) == 2


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_tables(tmp_path, one, other):
    for i in range(3):
        picture(tmp_path / one / f"{one}{i}.png", (i, 0, 0))
    rows = [
        f"{form}/{form}{i}.png,{name},{form}" for i, (form, name) in enumerate([(other, NFC), (one, NFD), (other, "x")])
    ]
    (tmp_path / "metadata.csv").write_text("\n".join([f"file_name,{other},part", *rows]), "utf-8")
    columns = {"labels": one, "splits": "part"}
    found = load(tmp_path, split=one, **columns)
    assert len(found) == 3 and found.class_names == (NFC, "x") and sorted(found.labels.tolist()) == [0, 0, 1]


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_masks_and_depth(tmp_path, one, other):
    for i in range(2):
        picture(tmp_path / "images" / one / f"{one}{i}.png", (i, 0, 0))
        picture(tmp_path / "masks" / other / f"{other}{i}.png", i, "L")
        (tmp_path / "depth").mkdir(exist_ok=True)
        (tmp_path / "depth" / other).mkdir(exist_ok=True)
        np.save(tmp_path / "depth" / other / f"{other}{i}.npy", np.ones((9, 9), "float32"))
    for target in ("segmentation_masks", "depths"):
        found = load(tmp_path, target)
        pairs = zip(found.images, found.targets[target])
        assert len(found) == 2 and all(pathlib.Path(a).stem[-1] == pathlib.Path(b).stem[-1] for a, b in pairs)


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_boxes(tmp_path, one, other):
    for i in range(2):
        for kind in ("yolo", "voc", "coco"):
            picture(tmp_path / kind / "images" / one / f"{one}{i}.png", (i, 0, 0))
        for folder in ("yolo/labels", "voc/annotations"):
            (tmp_path / folder / other).mkdir(parents=True, exist_ok=True)
        (tmp_path / "yolo/labels" / other / f"{other}{i}.txt").write_text("0 0.5 0.5 0.2 0.2")
        objects = OBJECT.format(one) + OBJECT.format(other)
        (tmp_path / "voc/annotations" / other / f"{other}{i}.xml").write_text(
            f"<annotation>{objects}</annotation>", "utf-8"
        )
    (tmp_path / "yolo/list.txt").write_text(f"images/{other}/{other}0.png\nimages/{other}/{other}1.png", "utf-8")
    (tmp_path / "yolo/data.yaml").write_text(f"names: [{one}]\ntrain: list.txt\nval: images/{other}", "utf-8")
    content = {
        "images": [{"id": i, "file_name": f"{other}/{other}{i}.png", "width": 9, "height": 9} for i in range(2)],
        "annotations": [{"id": i, "image_id": i, "category_id": i, "bbox": [1, 1, 3, 3]} for i in range(2)],
        "categories": [{"id": 0, "name": one}, {"id": 1, "name": other}],
    }
    (tmp_path / "coco/annotations.json").write_text(json.dumps(content))
    for kind, split, count in (("yolo", "train", 2), ("yolo", "val", 2), ("voc", "all", 4), ("coco", "all", 2)):
        found = load(tmp_path / kind, "bounding_boxes", split)
        assert found.class_names == (NFC,) and (found.targets["bounding_boxes"][..., 4] == 0).sum() == count


def test_one_file_that_coco_names_twice(tmp_path):
    picture(tmp_path / f"{NFC}.png")
    images = [{"id": i, "file_name": f"{form}.png", "width": 9, "height": 9} for i, form in enumerate((NFC, NFD))]
    content = {"images": images, "annotations": [], "categories": [{"id": 0, "name": "x"}]}
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="must name each image once. Received: .* in two forms of Unicode"):
        load(tmp_path, "bounding_boxes")


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_clips(tmp_path, one, other):
    from keras_vit.data.clip_source import Sampling

    for folder in (one, other, "x"):
        (tmp_path / folder).mkdir()
        frames = [Image.new("RGB", (9, 9), (i, 0, 0)) for i in range(3)]
        frames[0].save(tmp_path / folder / "a.gif", save_all=True, append_images=frames[1:])
    found = sources.load(Data(source=f"folder:{tmp_path}"), "all", ("labels",), clips=Sampling(2))
    assert found.class_names == (NFC, "x") and sorted(found.labels.tolist()) == [0, 0, 1]


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_saved_names(tmp_path, one, other):
    (tmp_path / "labels.txt").write_text(f"{one}\nx\n", "utf-8")
    assert read_labels(tmp_path / "labels.txt") == (NFC, "x")
    source = Source(np.zeros((2, 4, 4, 3), "uint8"), {"labels": np.array([0, 1])}, (one, "x"))
    assert Classify(classes=(other, "x")).on(source).classes == (NFC, "x")
    assert sources.aligned(source, Classify(classes=("x", other)).classes).labels.tolist() == [1, 0]
    assert not differ((one, "x"), (other, "x")) and differ((one, "x"), ("y", "x"))
