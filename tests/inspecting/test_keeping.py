import csv
import dataclasses
import shlex

import pytest

import keras_vit
from keras_vit.config import Classify, Contrast, Data, Optim, Recipe
from keras_vit.data import sources
from keras_vit.inspecting import keeping
from keras_vit.inspecting.inspect import inspect_index
from tests.inspecting.conftest import picture, save
from tests.inspecting.test_of_recipe import recipe


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
    asked = Recipe(
        name="kept",
        task=Classify(),
        model={"variant": "mu/4", "image_size": 8},
        data=dataclasses.replace(data, batch_size=4),
        optim=Optim(epochs=1, warmup_epochs=0, xla=False),
    )
    assert inspect_index(divided, recipe=asked).counts()["leak"] == 0
    _, history = keras_vit.fit(asked, tmp_path / "run")
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


def captioned(folder):
    """Writes four pictures, of which the last one is equal to the first, and a table of captions without labels."""
    for i in range(4):
        save(picture(i % 3), folder / f"{i}.png")
    lines = [f"{i}.png,caption {k} of {i},{i}\n" for i in range(4) for k in range(2)]
    (folder / "metadata.csv").write_text("file_name,text,group\n" + "".join(lines))
    return folder


def test_captions_and_groups_stay(tmp_path, cache):
    """The table has no labels, and two rows a picture; also if a recipe names it."""
    path = captioned(tmp_path / "photos") / "metadata.csv"
    asked = recipe(path.parent, Contrast(), train="all", validation="all", test="all")
    for source in (path.parent, asked):
        assert keeping.write(path, inspect_index(source), {"exact"}) == ((3, 4) if source != asked else (3, 3))
        assert [row["text"] for row in rows(path)] == [f"caption {k} of {i}" for i in range(3) for k in range(2)]
        assert {row["group"] for row in rows(path)} == {"0", "1", "2"}


def test_no_column_is_lost(tmp_path, cache):
    folder = captioned(tmp_path / "photos")
    found = inspect_index(folder)
    path = tmp_path / "others" / "metadata.csv"
    path.parent.mkdir()
    path.write_text("file_name,age\na.png,1\n")
    with pytest.raises(ValueError, match="has columns that would be lost: 'age'"):
        keeping.write(path, found, {"exact"})
    assert path.read_text() == "file_name,age\na.png,1\n"
    (folder / "metadata.csv").unlink()
    (folder / "metadata.jsonl").write_text('{"file_name": "0.png", "age": 3}\n{"file_name": "1.png", "age": null}\n')
    with pytest.raises(ValueError, match="A folder has one table. Received: .*, and there is 'metadata.jsonl'"):
        keeping.check_name(folder / "metadata.csv")
    keeping.write(tmp_path / "keep.csv", inspect_index(folder), {"exact"})
    assert rows(tmp_path / "keep.csv") == [{"file_name": "0.png", "age": "3"}, {"file_name": "1.png", "age": ""}]
    (folder / "metadata.jsonl").write_text('{"file_name": "0.png", "tags": ["a"]}\n')
    with pytest.raises(ValueError, match="CSV, which has no lists. Received: 'metadata.jsonl'"):
        keeping.write(tmp_path / "more.csv", inspect_index(folder), {"exact"})


def test_the_printed_command_names_all_roles_and_quotes(tmp_path, cache):
    """Of a recipe whose validation data are the test data: what the column says is read for both."""
    folder = tmp_path / "my photos"
    for i in range(6):
        save(picture(i), folder / ("train", "test")[i % 2] / ("c", "d")[i // 2 % 2] / f"{i}.png")
    found = inspect_index(recipe(folder, train="train", validation="test", test="test"))
    keeping.write(folder / "metadata.csv", found, {"leak"})
    said = keeping.reading(found, folder / "metadata.csv")
    words = shlex.split(said.removeprefix("A recipe reads it: "))
    assert words == [
        f"data.source=folder:{folder}", "data.columns={'splits': 'split'}", "data.train=train",
        "data.validation=validation", "data.test=validation",
    ]  # fmt: skip
    data = Data(source=words[0].partition("=")[2], columns={"splits": "split"})
    assert [len(sources.load(data, word.partition("=")[2]).images) for word in words[2:]] == [3, 3, 3]


def test_what_cannot_be_kept_is_one_sentence(divided, tmp_path):
    with pytest.raises(ValueError, match="A kind of findings must be known. Received: 'leak5'. Did you mean 'leaks'"):
        keeping.kinds_of(["leak5"])
    with pytest.raises(ValueError, match="must end in .csv"):
        keeping.check_name(tmp_path / "keep.txt")
    with pytest.raises(ValueError, match="A table is for files. Received: 'digits', whose pictures are none"):
        keeping.check_files("digits")
    keeping.check_files(str(divided))
    assert keeping.kinds_of(["leaks", "label", "exact"]) == {"leak", "label", "exact"}
