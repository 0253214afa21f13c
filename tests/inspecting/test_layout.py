import numpy as np
import pytest

from keras_vit.inspecting import layout
from keras_vit.inspecting.pictures import Pictures


def laid_out(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    found = layout.laid_out(Pictures([*names], [str(folder / name) for name in names], folder=folder))
    return [(name, found.label(i), found.split(i)) for i, name in enumerate(found.names)]


def test_class_folders(tmp_path):
    assert laid_out(tmp_path, "cat/a.png", "cat/b/c.png", "dog/a.png", "x.png") == [
        ("cat/a.png", "cat", ""),
        ("cat/b/c.png", "cat", ""),
        ("dog/a.png", "dog", ""),
        ("x.png", "", ""),
    ]


def test_splits_of_class_folders_and_of_pictures_alone(tmp_path):
    assert laid_out(tmp_path / "a", "train/cat/a.png", "train/dog/a.png", "Test/cat/a.png") == [
        ("train/cat/a.png", "cat", "train"),
        ("train/dog/a.png", "dog", "train"),
        ("Test/cat/a.png", "cat", "Test"),
    ]
    assert laid_out(tmp_path / "b", "train/a.png", "val/a.png") == [
        ("train/a.png", "", "train"),
        ("val/a.png", "", "val"),
    ]
    assert laid_out(tmp_path / "c", "all/a.png", "all/b.png") == [("all/a.png", "", ""), ("all/b.png", "", "")]


def test_splits_next_to_other_folders(tmp_path):
    found = laid_out(tmp_path / "a", "train/cat/a.png", "test/dog/a.png", "unlabeled/a.png")
    assert found[2] == ("unlabeled/a.png", "", "") and found[1] == ("test/dog/a.png", "dog", "test")
    assert laid_out(tmp_path / "b", "car/a.png", "train/a.png")[1] == ("train/a.png", "train", "")  # vehicles


@pytest.mark.parametrize("other", ["masks", "annotations", "labels"])
def test_masks_and_annotations_are_no_classes(tmp_path, other):
    """Of YOLO (images/train) and of others (train/images)."""
    yolo = laid_out(tmp_path / "a", "images/train/a.png", "images/val/a.png", f"{other}/train/a.png")
    assert yolo == [("images/train/a.png", "", "train"), ("images/val/a.png", "", "val")]
    found = laid_out(tmp_path / "b", "train/images/a.png", f"train/{other}/a.png", "test/images/b.png")
    assert found == [("train/images/a.png", "", "train"), ("test/images/b.png", "", "test")]
    assert laid_out(tmp_path / "c", "images/a.png", f"{other}/a.png") == [("images/a.png", "", "")]


def test_tables_say_the_labels(tmp_path):
    (tmp_path / "metadata.csv").write_text("file_name,label\ntrain/a.png,cat\ntest/b.png,dog\ntrain/gone.png,cat\n")
    names = ("train/a.png", "test/b.png", "train/c.png")
    assert [row[1:] for row in laid_out(tmp_path, *names)] == [("cat", "train"), ("dog", "test"), ("", "train")]


def test_tables_may_say_the_splits(tmp_path):
    (tmp_path / "metadata.csv").write_text("file_name,split,label\na.png,train,cat\nb.png,test,dog\nc.png,,cat\n")
    found = laid_out(tmp_path, "a.png", "b.png", "c.png")
    assert [row[1:] for row in found] == [("cat", "train"), ("dog", "test"), ("cat", "")]


def test_each_split_may_have_a_table(tmp_path):
    for split, label in (("train", "cat"), ("val", "dog")):
        (tmp_path / split).mkdir()
        (tmp_path / split / "metadata.csv").write_text(f"file_name,label\na.png,{label}\n")
    assert [row[1:] for row in laid_out(tmp_path, "train/a.png", "val/a.png")] == [("cat", "train"), ("dog", "val")]


def test_a_table_may_say_splits_alone(tmp_path):
    (tmp_path / "metadata.csv").write_text("file_name,split\na.png,train\nb.png,test\n")
    assert [row[1:] for row in laid_out(tmp_path, "a.png", "b.png")] == [("", "train"), ("", "test")]


def files_of(folder, names, splits=None):
    return Pictures(names, [str(folder / name) for name in names], folder=folder).divided(splits or [None] * len(names))


def test_a_link_is_in_its_own_split(tmp_path):
    """And a file of two splits in both."""
    for name in ("train/a.png", "train/b.png", "test/c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "test" / "link.png").symlink_to("../train/a.png")
    names = ["test/c.png", "test/link.png", "train/a.png", "train/b.png"]
    others = files_of(tmp_path, [*names, "train/b.png"], ["test", "test", "train", "train", "test"])
    found = layout.as_in(files_of(tmp_path, names), others)
    assert found.names == [*names, "train/b.png"] and not found.left_out
    assert [found.split(i) for i in range(5)] == ["test", "test", "train", "train", "test"]
    (tmp_path / "elsewhere").symlink_to(tmp_path / "train")
    found = layout.as_in(files_of(tmp_path / "elsewhere", ["b.png"]), others)
    assert [found.split(i) for i in range(2)] == ["train", "test"]


def test_what_the_caller_gives_is_as_many(tmp_path):
    pictures = Pictures(["a.png", "b.png"], [])
    found = layout.with_given(pictures, np.array(["x", "y"]), ["train", None])
    assert [(found.label(i), found.split(i)) for i in range(2)] == [("x", "train"), ("y", "")]
    for name, given in (("labels", ["x"]), ("splits", "train")):
        with pytest.raises(ValueError, match=f"`{name}` must be a list, one for each of the 2 pictures"):
            layout.with_given(pictures, *((given, None) if name == "labels" else (None, given)))
