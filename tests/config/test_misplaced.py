import json

import pytest
from PIL import Image

import keras_vit
from keras_vit import config
from keras_vit.config import misplaced

PARTS = "'data.train=all[:80%]' 'data.validation=all[80%:]' 'data.test=all[80%:]'"
MASKS = """'task.classes=("background", "NAME")'"""


def instead(given):
    return misplaced.instead_of_recipe(given, keras_vit.list_recipes(), keras_vit.load_recipe)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Makes folders and files, empty but for images, in the current directory."""
    monkeypatch.chdir(tmp_path)

    def make(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (8, 8)).save(name) if name.endswith(".png") else (tmp_path / name).touch()

    return make


@pytest.mark.parametrize(
    "files, given, instead",
    [
        (["a/cat/1.png", "a/dog/1.png"], "a", "finetune_folder data.source=folder:a"),
        (["a b/cat/1.png", "a b/dog/1.png"], "a b", "finetune_folder 'data.source=folder:a b'"),
        (["a/1.png"], "a", "finetune_folder data.source=folder:a, where each class must have its folder of images"),
        (
            ["a/train/x/1.png", "a/train/y/1.png", "a/valid/x/1.png", "a/valid/y/1.png"],
            "a",
            "finetune_folder data.source=folder:a data.train=train data.validation=valid data.test=valid",
        ),
        (["a/metadata.csv", "a/1.png"], "a", "finetune_folder data.source=folder:a"),
        (["a/metadata.csv", "a/1.png"], "a/metadata.csv", "finetune_folder data.source=folder:a"),
        (["a/b.jsonl"], "a/b.jsonl", "finetune_folder data.source=folder:a, where the table must be called metadata.j"),
        (["a/images/1.png", "a/masks/1.png"], "a", f"nuclei data.source=folder:a {MASKS} {PARTS}"),
        (["a/images/1.png", "a/annotations.json"], "a", f"blood_cells data.source=folder:a 'task.classes=()' {PARTS}"),
        (["a/annotations.json"], "a/annotations.json", f"blood_cells data.source=folder:a 'task.classes=()' {PARTS}"),
        (["a/c.json"], "a/c.json", f"blood_cells data.source=folder:a 'task.classes=()' {PARTS}, where COCO's file"),
        (
            ["a/train/annotations.json", "a/val/annotations.json", "a/test/annotations.json"],
            "a",
            "blood_cells data.source=folder:a 'task.classes=()' data.train=train data.validation=val data.test=test",
        ),
        (["a/data.yaml"], "a/data.yaml", "blood_cells data.source=folder:a/data.yaml 'task.classes=()'"),
        (["a.keras"], "a.keras", "finetune_folder model.weights=a.keras data.source=folder:PATH"),
        (["a/cat/1.png", "a/dog/1.png"], "folder:a", "finetune_folder data.source=folder:a"),
        ([], "tfds:cifar10", "finetune_folder data.source=tfds:cifar10"),
    ],
)
def test_data_and_models_are_given_to_a_recipe(files, given, instead, place):
    place(*files)
    with pytest.raises(ValueError, match="^A recipe must be a name or a Python file. Did you mean ") as error:
        keras_vit.load_recipe(given)
    assert f"Did you mean {instead}" in str(error.value) and str(error.value).endswith(f"? Received: {given!r}")


def test_a_run_is_resumed_by_its_recipe_and_its_changes(place):
    recipe = keras_vit.load_recipe("digits", {"optim.epochs": 3, "model.depth": 2})
    for name, values in {"a": config.to_dict(recipe), "b": {"name": "mine"}, "c": []}.items():
        place(f"{name}/recipe.json")
        with open(f"{name}/recipe.json", "w") as file:
            json.dump(values, file)
    assert instead("a") == "digits optim.epochs=3 model.depth=2 --workdir a"
    assert [instead(name) for name in "bc"] == [f"RECIPE.py --workdir {name}" for name in "bc"]


@pytest.mark.parametrize("given", ["nothing", "photo.png", "mine.txt"])
def test_what_is_nothing_of_this_is_left(given, place):
    place("photo.png", "mine.txt")
    assert instead(given) is None
    with pytest.raises(ValueError, match="Did you mean|Known:|must be a name or a Python file. Received: "):
        keras_vit.load_recipe(given)


def test_data_next_to_a_recipe_are_a_change_of_its_source(place):
    place("a b/cat/1.png")
    for word, such in (("a b", "'data.source=folder:a b'"), ("tfds:mnist", "data.source=tfds:mnist")):
        with pytest.raises(ValueError, match=f"must be name=value, such as {such}. Received: '{word}'"):
            config.parse([word])
    with pytest.raises(ValueError, match="such as optim.epochs=3. Received: ''"):
        config.parse([""])
