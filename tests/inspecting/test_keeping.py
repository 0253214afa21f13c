import csv
import dataclasses

import pytest

import keras_vit
from keras_vit.config import Classify, Data, Optim, Recipe
from keras_vit.data import sources
from keras_vit.inspecting import keeping
from keras_vit.inspecting.inspect import inspect_index
from tests.inspecting.conftest import picture, save


def rows(path):
    with open(path, newline="") as file:
        return [*csv.DictReader(file)]


def test_recipes_read_what_is_kept(divided, tmp_path):
    """And train on it: leaks are gone, copies in a split are there."""
    found = inspect_index(divided)
    path = divided / "metadata.csv"
    assert keeping.write(path, found, keeping.kinds_of(["leaks"])) == (26, 29)
    assert keeping.reading(found, path) == (
        f"A recipe reads it: data.source=folder:{divided} \"data.columns={{'splits': 'split'}}\" data.train=train "
        "data.validation=val data.test=test"
    )
    columns = {"splits": "split"}
    data = Data(source=f"folder:{divided}", train="train", validation="val", test="test", columns=columns)
    names = {role: {str(p) for p in sources.load(data, role).images} for role in ("train", "val", "test")}
    assert {role: len(paths) for role, paths in names.items()} == {"train": 12, "val": 7, "test": 7}
    assert str(divided / "train/cat/same.png") in names["train"]
    assert not {str(divided / "train/cat" / name) for name in ("00.png", "01.png", "bad.png")} & names["train"]
    recipe = Recipe(
        name="kept",
        task=Classify(),
        model={"variant": "mu/4", "image_size": 8},
        data=dataclasses.replace(data, batch_size=4),
        optim=Optim(epochs=1, warmup_epochs=0, xla=False),
    )
    assert inspect_index(divided, recipe=recipe).counts()["leak"] == 0
    _, history = keras_vit.fit(recipe, tmp_path / "run")
    assert len(history["loss"]) == 1


def test_a_table_s_other_columns_stay(tmp_path, cache):
    root = tmp_path / "photos"
    for i in range(4):
        save(picture(i), root / "deep" / f"{i}.png")
    save(picture(0), root / "deep" / "0copy.png")
    (root / "metadata.csv").write_text(
        "file_name;kind of;label;patient\n"
        + "".join(f"deep/{i}.png;x;{'ab'[i % 2]};{i}\n" for i in range(4))
        + "0copy;y;a;9\n"
    )
    found = inspect_index(root)
    assert found.counts()["exact"] == 1
    keeping.write(tmp_path / "keep.csv", found, {"exact"})
    kept = rows(tmp_path / "keep.csv")
    assert [row["file_name"] for row in kept] == ["deep/0.png", "deep/1.png", "deep/2.png", "deep/3.png"]
    assert kept[3] == {"file_name": "deep/3.png", "kind of": "x", "label": "b", "patient": "3"}
    keeping.write(tmp_path / "all.csv", found, ())
    [copy] = [row for row in rows(tmp_path / "all.csv") if row["patient"] == "9"]
    assert copy == {"file_name": "deep/0copy.png", "kind of": "y", "label": "a", "patient": "9"}
    assert (root / "metadata.csv").read_text().startswith("file_name;")


def test_what_cannot_be_kept_is_one_sentence(divided, tmp_path):
    with pytest.raises(ValueError, match="A kind of findings must be known. Received: 'leak5'. Did you mean 'leaks'"):
        keeping.kinds_of(["leak5"])
    with pytest.raises(ValueError, match="must end in .csv"):
        keeping.check_name(tmp_path / "keep.txt")
    assert keeping.kinds_of(["leaks", "label", "exact"]) == {"leak", "label", "exact"}
