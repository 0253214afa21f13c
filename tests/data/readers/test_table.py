import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.readers import table
from keras_vit.utils.warned import LeftOut

HEADER = "file_name,label,tags,age,height,cat,dog,patient,text"
ROWS = [
    "train/a.png,10,x; y,3,1.5,1,0,p1,one",
    "train/b.png,9,,4.5,2,0,1,p2,two",
    "val/c.png,11,z,1e2,-1,,true,p1,three",
]


@pytest.fixture
def folder(tmp_path):
    for name in ("train/a.png", "train/b.png", "val/c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    write(tmp_path, ROWS)
    return tmp_path


def write(folder, rows, header=HEADER):
    (folder / "metadata.csv").write_text("\n".join([header, *rows]), encoding="utf-8")


def read(folder, *targets, inside="", skip=False, **columns):
    return table.read(folder / "metadata.csv", folder / inside, columns, targets, skip=skip)


def test_every_kind_of_target(folder):
    columns = dict(numbers=["age", "height"], groups="patient")
    found = read(folder, "labels", "numbers", **columns)
    assert found.paths == [str(folder / row.partition(",")[0]) for row in ROWS]
    assert found.class_names == ("9", "10", "11")  # in the order of numbers
    targets = found.targets
    assert targets["labels"].tolist() == [1, 0, 2] and targets["labels"].dtype == np.int32
    np.testing.assert_array_equal(targets["numbers"], np.float32([[3, 1.5], [4.5, 2], [100, -1]]))
    assert found.groups.tolist() == [table.group_of(name) for name in ("p1", "p2", "p1")]


def test_a_part_of_the_folder_has_the_classes_of_all(folder):
    found = read(folder, "labels", inside="val")
    assert found.paths == [str(folder / "val" / "c.png")] and found.targets["labels"].tolist() == [2]
    with pytest.raises(ValueError, match="must have a row for each image in .*test'. Received: none"):
        read(folder, "labels", inside="test")


def test_a_column_says_the_splits(folder):
    found = table.read(folder / "metadata.csv", folder, {"splits": "patient"}, ["labels"], "p2")
    assert found.paths == [str(folder / "train" / "b.png")] and found.class_names == ("9", "10", "11")
    assert found.below == 3  # the others are no surprise
    with pytest.raises(ValueError, match="has no row of the split 'test'. Its column 'patient' has: 'p1', 'p2'"):
        table.read(folder / "metadata.csv", folder, {"splits": "patient"}, ["labels"], "test")
    for name in ("train/a.png", "train/b.png", "val/c.png"):
        Image.new("RGB", (4, 4)).save(folder / name)
    data = Data(source=f"folder:{folder}", columns={"splits": "patient"})
    assert [len(sources.load(data, split)) for split in ("p1", "p2", "all", "p1[:50%]")] == [2, 1, 3, 1]


def test_a_table_above_the_split(folder):
    for name in ("train/a.png", "train/b.png", "val/c.png"):
        Image.new("RGB", (4, 4)).save(folder / name)
    for below in ("x", "y"):
        (folder / "train" / below).mkdir()
        Image.new("RGB", (4, 4)).save(folder / "train" / below / "d.png")
    write(folder / "train", ["x/d.png,a", "y/d.png,b"], "file_name,label")
    found = sources.load(Data(source=f"folder:{folder}"), "train/y")
    assert found.class_names == ("a", "b") and found.labels.tolist() == [1]


@pytest.mark.parametrize(
    "cell", ["a.png", "a", "train/a", "./train/a.png", "train\\a.png", "train//a.png", "{}/train/a.png"]
)
def test_files_are_found_by_less_or_more_than_their_path(folder, cell):
    write(folder, [f"{cell.format(folder)},1"], "file_name,label")
    assert read(folder, "labels").paths == [str(folder / "train" / "a.png")]


def test_a_name_of_two_files_is_none(folder):
    (folder / "val" / "a.png").touch()
    write(folder, ["a.png,1"], "file_name,label")
    with pytest.raises(ValueError, match="line 2: 'a.png' may be any of 2 files, such as 'train/a.png' and 'val/a.pn"):
        read(folder, "labels")


def test_several_labels_are_not_taken_for_one(folder):
    write(folder, ["train/a.png,cat; dog", "train/b.png,dog", "val/c.png,cat"], "file_name,label")
    with pytest.raises(
        ValueError, match="Several, as in 'cat; dog', are for Classify.multilabel=True.* 'cat' and 'dog'"
    ):
        read(folder, "labels")
    write(folder, ["train/a.png,cat; dog", "train/b.png,dog", "val/c.png,owl"], "file_name,label")
    assert read(folder, "labels").class_names == ("cat; dog", "dog", "owl")
    for separator in ";,|":
        pairs = [separator.join(pair) for pair in (("cat", "dog"), ("dog", "fox"))]
        write(folder, [f'train/a.png,"{pairs[0]}"', f'train/b.png,"{pairs[1]}"', "val/c.png,owl"], "file_name,label")
        with pytest.raises(ValueError, match="must have one label for each image. Several, as in 'cat.dog', are for"):
            read(folder, "labels")
    write(folder, ['train/a.png,"cat,dog"', "train/b.png,dog", "val/c.png,cat"], "file_name,label")
    with pytest.raises(ValueError, match="Several, as in 'cat,dog', are for"):
        read(folder, "labels")
    write(folder, ['train/a.png,"Pepper, hot"', 'train/b.png,"Pepper, mild"', "val/c.png,owl"], "file_name,label")
    assert read(folder, "labels").class_names == ("Pepper, hot", "Pepper, mild", "owl")


def test_an_accent_of_a_label_is_written_in_one_way(folder):
    write(folder, ["train/a.png,caf\u00e9", "train/b.png,cafe\u0301", "val/c.png,b"], "file_name,label")
    assert read(folder, "labels").class_names == ("b", "caf\u00e9")


def test_numbers_of_json_lines(folder):
    (folder / "metadata.csv").unlink()
    rows = [{"file_name": "train/a.png", "age": 3, "label": 1}, {"file_name": "val/c.png", "age": 0.5, "label": 0}]
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = table.read(folder / "metadata.jsonl", folder, {"numbers": "age"}, ("labels", "numbers"))
    assert found.class_names == ("0", "1") and found.targets["labels"].tolist() == [1, 0]
    assert found.targets["numbers"].tolist() == [[3], [0.5]]


BAD = [
    ("train/b.png,,,,,,,,", dict(targets="labels"), "line 3: 'label' is empty"),
    ("train/b.png,9,,,,,,,", dict(targets="numbers", numbers="age"), "line 3: 'age' is empty"),
    ("train/b.png,9,,nan,,,,,", dict(targets="numbers", numbers="age"), "line 3: 'age' is no number: 'nan'"),
    ("train/b.png,9,,1e39,,,,,", dict(targets="numbers", numbers="age"), "line 3: 'age' is no number: '1e39'"),
    ("train/b.png,9,,1_000,,,,,", dict(targets="numbers", numbers="age"), "line 3: 'age' is no number: '1_000'"),
    ("train/b.png,9,,old,,,,,", dict(targets="numbers", numbers="age"), "line 3: 'age' is no number: 'old'"),
    ("train/b.png,NaN,,,,,,,", dict(targets="labels"), "line 3: 'label' must be the name of a class, not of a missing"),
    ("train/b.png,['a'],,,,,,,", dict(targets="labels"), "line 3: 'label' must be the name of one class, no list."),
    ("train/a.png,9,,,,,,,", dict(targets="labels"), "line 3: 'train/a.png' is in line 2 too"),
    ("train/x.png,9,,,,,,,", dict(targets="labels"), "line 3: there is no file 'train/x.png'"),
    ("../b.png,9,,,,,,,", dict(targets="labels"), "line 3: '../b.png' is not below the table's folder"),
    (",9,,,,,,,", dict(targets="labels"), "line 3: it names no file"),
]


@pytest.mark.parametrize("row, given, message", BAD)
def test_wrong_rows_are_named_or_left_out(folder, row, given, message):
    write(folder, [ROWS[0], row])
    given = dict(given)
    targets = given.pop("targets")
    with pytest.raises(ValueError, match="1 rows of .*metadata.csv' are wrong.*\n.*") as told:
        read(folder, targets, **given)
    assert message in str(told.value)
    with pytest.warns(LeftOut, match="Left out 1 rows of metadata.csv"):
        assert len(read(folder, targets, skip=True, **given).paths) == 1


def test_columns_are_found_or_named(folder):
    with pytest.raises(
        ValueError,
        match=r"has no column of numbers, such as .* or 'number'. Name it: data.columns={'numbers': 'COL",
    ):
        read(folder, "numbers")
    with pytest.raises(ValueError, match="has no column 'size'. It has: 'file_name', 'label'"):
        read(folder, "labels", labels="size")
    with pytest.raises(ValueError, match=r"data.columns\['labels'\] must be the name of a column. Received: {'names'"):
        read(folder, "labels", labels={"names": "label"})
    write(folder, ["train/a.png,1"], "path,label")
    with pytest.raises(ValueError, match="has no column of images, such as 'file_name'"):
        read(folder, "labels")
    assert read(folder, "labels", images="path").targets["labels"].tolist() == [0]


def load(folder, targets=("labels",), **columns):
    return sources.load(Data(source=f"folder:{folder}", columns=columns or None), "all", targets)


def test_a_folder_takes_what_its_table_has(folder):
    folder = folder / "flat"
    for name in ("one/a.png", "one/b.png", "two/c.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(folder / name)
    rows = [row.replace("train/", "one/").replace("val/", "two/") for row in ROWS]
    write(folder, rows)
    assert load(folder, labels="age").class_names == ("1e2", "3", "4.5")
    assert load(folder, ("numbers",), numbers="age", groups="patient").groups.tolist().count(table.group_of("p1")) == 2
    write(folder, rows, HEADER.replace("file_name", "id"))  # a table of somebody else's
    assert load(folder).class_names == ("one", "two")
    for columns, message in (
        (
            {"label": "age"},
            "may name the columns of images, labels, multilabels, numbers, texts, seg.*, splits. Received: 'label'",
        ),
        (
            {"groups": "id"},
            "has no column of images, such as 'file_name'. Name it: data.columns={'images': 'COLUMN'}. It has: 'id'",
        ),
        (
            {"groups": "id", "labels": "tags"},
            "is for labels or numbers that metadata.csv has. Received: .* and its columns 'id'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            load(folder, **columns)
    write(folder / "one", ["b.png,y"], "a.png,x")  # its first line is a row
    with pytest.raises(ValueError, match="metadata.csv' must begin with the names of .* Received: 'a.png', 'x', and"):
        sources.load(Data(source=f"folder:{folder / 'one'}"), "all")
    (folder / "metadata.csv").unlink()
    (folder / "one/metadata.csv").unlink()
    with pytest.raises(ValueError, match="must have a table, metadata.csv or .*, with numbers for each"):
        load(folder, ("numbers",))
    with pytest.raises(ValueError, match="must have a row in a table with the column 'patient' .* Received: no table"):
        load(folder, groups="patient")
    with pytest.raises(ValueError, match="is for a folder with a table. Received: .* with data.source='digits'"):
        sources.load(Data(columns={"groups": "patient"}), "all")


def test_several_rows_of_an_image_are_texts_of_one_group(folder):
    write(folder, [*ROWS, "train/a.png,10,x,3,1.5,1,0,p1,four"])
    found = read(folder, "texts")
    assert found.paths[0] == found.paths[3] and [*found.targets["texts"]] == [("one",), ("two",), ("three",), ("four",)]
    assert found.groups[0] == found.groups[3] and len({*found.groups.tolist()}) == 3  # no split divides them
    assert read(folder, "texts", groups="patient").groups.tolist()[0] == table.group_of("p1")
    assert [*read(folder, "texts", texts=["text", "tags"]).targets["texts"]][:2] == [("one", "x; y"), ("two",)]
    with pytest.raises(ValueError, match="'train/a.png' is in line 2 too"):
        read(folder, "labels")
    write(folder, ["train/a.png,10,x,3,1.5,1,0,p1,"])
    with pytest.raises(ValueError, match="line 2: 'text' is empty"):
        read(folder, "texts")


def test_an_answer_is_one_whatever_is_in_it(folder):
    write(folder, ['a.png,"red, blue",why', "a.png,red,why", "a.png,blue,why"], "file_name,answer,question")
    (folder / "a.png").touch()
    found = table.read(folder / "metadata.csv", folder, {"labels": "answer", "texts": "question"}, ("texts", "labels"))
    assert found.class_names == ("blue", "red", "red, blue") and found.targets["labels"].tolist() == [2, 1, 0]


def test_an_image_in_two_splits_is_said(folder):
    write(folder, ["a.png,one,train", "a.png,two,test"], "file_name,text,split")
    (folder / "a.png").touch()
    with pytest.warns(UserWarning, match="1 images of metadata.csv are in several splits, such as 'a.png'"):
        table.read(folder / "metadata.csv", folder, {"splits": "split"}, ("texts",), "train")


def test_images_are_in_one_column(folder):
    with pytest.raises(
        ValueError, match="in one column: write the bands of a sample into one file. Received: 'label', "
    ):
        read(folder, "labels", images=["label", "patient"], labels="cat")
