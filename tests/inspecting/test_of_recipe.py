import json

import numpy as np
import pytest

from keras_vit.config import Augment, Classify, Contrast, Data, Recipe
from keras_vit.inspecting import opening
from keras_vit.tasks import Detect
from tests.inspecting.conftest import an_index, picture, save
from tests.small import small


def recipe(folder, task=None, **data):
    task = task or Classify()
    return Recipe(
        name="mine",
        task=task,
        model={"variant": "mu/4", "image_size": 8},
        data=Data(**data, source=f"folder:{folder}"),
        augment=Augment(),
    )


def said(pictures):
    return sorted((name, pictures.label(i), pictures.split(i)) for i, name in enumerate(pictures.names))


def test_a_recipe_names_labels_and_splits(divided):
    (divided / "train" / "cat" / "bad.png").rename(divided / "train" / "cat" / "broken.png")
    pictures, vectors = opening.opened(recipe(divided, train="train", validation="val", test="test"))
    assert vectors is None and pictures.folder == divided and {*pictures.split_names} == {"train", "validation", "test"}
    assert [*pictures.unread] == ["train/cat/broken.png"]
    found = said(pictures)
    assert ("val/dog/06.png", "dog", "validation") in found and len(found) == 28


def test_parts_of_one_split(divided):
    """Those that validation and test share are validation's."""
    train = divided / "train"
    pictures, _ = opening.opened(recipe(train, train="all[:50%]", validation="all[50%:]", test="all[50%:]"))
    assert {*pictures.split_names} == {"train", "validation"} and len(pictures) == 14


def test_pictures_in_memory(tmp_path):
    """Digits, whose recipe has a tenth for validation: no file is needed."""
    pictures, _ = opening.opened(small())
    assert not pictures.files and pictures.names[0] == "train:0" and pictures.label(0) in "0123456789"
    with pytest.raises(
        ValueError, match="`recipe` must be of the files that are inspected. Received: a recipe of images"
    ):
        opening.opened(an_index(tmp_path, ["a.png"], np.eye(1)), recipe=small())


def test_coco_has_pictures_and_no_labels(tmp_path, cache):
    for split in ("train", "valid"):
        for i in range(2):
            save(picture(i), tmp_path / split / f"{i}.png")
        images = [{"id": i, "file_name": f"{i}.png", "width": 24, "height": 24} for i in range(2)]
        boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [2, 2, 9, 9], "area": 81} for i in range(2)]
        coco = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cell"}]}
        (tmp_path / split / "_annotations.coco.json").write_text(json.dumps(coco))
    task = Detect(classes=("cell",))
    asked = recipe(tmp_path, task, train="train", validation="valid", test="valid")
    for source in (tmp_path, asked):
        pictures, _ = opening.opened(source)
        assert len(pictures) == 4 and pictures.labels is None and len(pictures.split_names) == 2


def test_a_picture_with_several_texts_is_one(tmp_path, cache):
    for i in range(3):
        save(picture(i), tmp_path / f"{i}.png")
    (tmp_path / "metadata.csv").write_text("file_name,text\n" + "".join(f"{i % 3}.png,text {i}\n" for i in range(6)))
    asked = recipe(tmp_path, Contrast(), train="all", validation="all", test="all")
    pictures, _ = opening.opened(asked)
    assert sorted(pictures.names) == ["0.png", "1.png", "2.png"]
