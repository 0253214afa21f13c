import json

import numpy as np
import pytest

from keras_vit.config import Augment, Classify, Data, Recipe
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


def test_an_index_has_what_its_recipe_says(divided):
    names = ["train/cat/00.png", "val/cat/02.png", "elsewhere.png"]
    index = an_index(divided, names, np.eye(3))
    pictures, vectors = opening.opened(index, recipe=recipe(divided, train="train", validation="val", test="test"))
    assert said(pictures) == [("train/cat/00.png", "cat", "train"), ("val/cat/02.png", "cat", "validation")]
    np.testing.assert_array_equal(vectors, np.eye(3)[:2])
    save(picture(0), divided.parent / "others" / "a" / "0.png")
    with pytest.raises(ValueError, match="`recipe` must be of the files that are inspected. Received: one of"):
        opening.opened(
            an_index(divided.parent / "others", ["a/0.png"], np.eye(1)),
            recipe=recipe(divided, train="train", validation="val", test="test"),
        )


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


def test_a_moved_folder_is_named(divided):
    index = an_index("/nowhere", ["train/cat/00.png", "val/cat/02.png"], np.eye(2))
    pictures, _ = opening.opened(index)
    assert pictures.images is None and "pass where it is now" in pictures.left_out[0]
    assert opening.opened(index, folder=divided)[0].images[0] == str(divided / "train/cat/00.png")


def test_clips_have_vectors_alone(tmp_path):
    pictures, _ = opening.opened(an_index(tmp_path, ["a/0.mp4", "b/0.mp4"], np.eye(2)))
    assert pictures.images is None and "the index is of clips" in pictures.left_out[0] and pictures.label(0) == "a"


def test_tokens_of_patches_are_refused(tmp_path):
    with pytest.raises(ValueError, match="one vector for each image"):
        opening.opened(an_index(tmp_path, ["a.png", "b.png"], np.ones((2, 2, 2, 3))))
