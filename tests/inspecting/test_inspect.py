import os
import re

import numpy as np
import pytest

import keras_vit
from keras_vit.inspecting.inspect import inspect_index
from tests.inspecting.conftest import an_index, picture, save


def rows(found, kind):
    return [(one.file, one.other) for one in found.findings if one.kind == kind]


def test_what_was_planted_is_found_and_nothing_else(divided):
    found = keras_vit.inspect_index(divided)
    assert found.counts() == {"unreadable": 1, "leak": 2, "exact": 1, "near": 1, "label": 0, "outlier": 0}
    leaks = [("train/cat/00.png", "test/cat/copy.bmp"), ("train/cat/01.png", "val/cat/mirror.png")]
    assert rows(found, "leak") == leaks
    assert [one.why for one in found.findings if one.kind == "leak"] == ["the same pixels", "look alike, mirrored"]
    assert rows(found, "near") == [("train/dog/small.jpg", "train/dog/05.png")]
    [same] = [one for one in found.findings if one.kind == "exact"]
    assert (same.file, same.other) == ("train/dog/04.png", "train/cat/same.png")
    assert (same.label, same.suggested, same.split) == ("dog", "cat", "train")
    [bad] = [one for one in found.findings if one.kind == "unreadable"]
    assert bad.file == "train/cat/bad.png" and bad.why == "is not a PNG, JPEG, BMP, GIF or WebP image"
    assert found.remarks == [
        "Near copies by vectors, labels and outliers: they need the index of a model, which the command embed writes"
    ]


def test_equal_pictures_share_what_is_found(tmp_path, cache):
    """Of two equal pictures in the training data, both leak; of two equal ones that are alike to a third, both go."""
    for i in range(6):
        save(picture(i + 50), tmp_path / ("train", "test")[i % 2] / f"{i}.png")
    for name in ("train/a.png", "train/b.png"):
        save(picture(0, 48), tmp_path / name)
    save(picture(0, 48), tmp_path / "test" / "t.jpg", quality=85)
    save(picture(1, 48), tmp_path / "train" / "c.jpg", quality=85)
    for name in ("train/d.png", "train/e.png"):
        save(picture(1, 48), tmp_path / name)
    found = inspect_index(tmp_path)
    assert rows(found, "leak") == [("train/a.png", "test/t.jpg"), ("train/b.png", "test/t.jpg")]
    assert rows(found, "near") == [("train/d.png", "train/c.jpg"), ("train/e.png", "train/c.jpg")]


def test_one_split_is_said(tmp_path):
    index = an_index(tmp_path / "gone", ["a.png", "b.png"], np.eye(2))
    assert "Leaks: there is one split, 'train'" in inspect_index(index, splits=["train"] * 2).remarks


def test_a_class_of_one_picture_is_a_remark(tmp_path):
    """It cannot be learned and judged."""
    vectors = np.random.default_rng(0).normal(size=(31, 8))
    index = an_index(tmp_path / "gone", [f"{i}.png" for i in range(31)], vectors)
    found = inspect_index(index, ["a"] * 30 + ["b"])
    assert "Labels: they need two classes, each of two different pictures" in found.remarks


def test_a_name_that_is_not_utf8_is_written(tmp_path, cache):
    for name in (b"\xff.png", b"a.png"):
        save(picture(0), tmp_path / "photos" / os.fsdecode(name))
    inspect_index(tmp_path / "photos", to=tmp_path / "out")
    assert b"\xff.png" in (tmp_path / "out" / "findings.csv").read_bytes()
    assert "?.png" in (tmp_path / "out" / "findings.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("given", [{"near": 0.5}, {"folder": "elsewhere"}])
def test_what_is_for_an_index_is_refused_without(tmp_path, given):
    with pytest.raises(ValueError, match=f"`{next(iter(given))}` is for an index of vectors. Received: "):
        inspect_index(tmp_path, **given)


def clusters(count=60, width=32, seed=0):
    """Returns vectors around two places, and the class of each."""
    rng, classes = np.random.default_rng(seed), np.arange(count) % 2
    return rng.normal(0, 0.3, (count, width)) + 3 * np.eye(width)[classes], classes


def test_vectors_find_labels_outliers_and_copies(tmp_path):
    """The pictures are gone: their vectors are enough."""
    vectors, classes = clusters()
    names = [f"{'ab'[kind]}/{i}.png" for i, kind in enumerate(classes)]
    names[7] = "a/7.png"  # it is among those of b
    vectors[11] = vectors[13] + 1e-4
    vectors[20] = -5
    found = inspect_index(an_index(tmp_path / "gone", names, vectors))
    assert [(one.file, one.label, one.suggested) for one in found.findings if one.kind == "label"] == [
        ("a/7.png", "a", "b")
    ]
    assert rows(found, "near") == [("b/13.png", "b/11.png")]
    assert rows(found, "outlier") == [("a/20.png", "")]
    assert "Pixels: the folder of the index" in found.remarks[0] and "Leaks: no folders of splits" in found.remarks[1]


def test_what_is_given_counts(tmp_path):
    vectors, classes = clusters()
    vectors[1] = vectors[3]
    vectors[1, 9] += 0.1
    index = an_index(tmp_path / "gone", [f"{i}.png" for i in range(60)], vectors)
    labels, splits = ["ab"[kind] for kind in classes], ["train"] * 60
    labels[9], splits[3] = "a", "test"
    found = inspect_index(index, labels, splits=splits)
    assert [(one.kind, one.file, one.other) for one in found.findings] == [
        ("leak", "1.png", "3.png"),
        ("label", "9.png", ""),
    ]
    assert inspect_index(index, labels, splits=splits, near=0.9999).counts()["leak"] == 0
    with pytest.raises(ValueError, match="`labels` must be a list, one for each of the 60 pictures. Received: 2"):
        inspect_index(index, ["a", "b"])


@pytest.mark.parametrize(
    "count, labels, said",
    [
        (60, None, "Labels: the pictures are in no class folders"),
        (60, ["a"] * 60, "Labels: they need two classes, .* there is one class of 60"),
        (12, ["a", "b"] * 6, "Labels: they need two classes, one of them of 10 .* there is 2 classes of 12"),
        (12, None, "Outliers: they need 30 different pictures, and there are 12"),
        (61, ["a", "b"] * 30 + ["c"], "Labels of 1 classes with fewer than 10 different pictures"),
    ],
)
def test_it_says_what_it_cannot_look_for(tmp_path, count, labels, said):
    index = an_index(tmp_path / "gone", [f"{i}.png" for i in range(count)], clusters(count)[0])
    found = inspect_index(index, labels)
    assert any(re.search(said, text) for text in found.remarks), found.remarks


def test_what_is_no_data_set_is_one_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="There is no image in the folder"):
        inspect_index(tmp_path / "empty")
    save(picture(0), tmp_path / "one" / "a.png")
    with pytest.raises(ValueError, match="There must be two pictures to compare. Received: 1 in"):
        inspect_index(tmp_path / "one")
    with pytest.raises(FileNotFoundError, match="There is no folder .*nowhere', and no recipe and no index"):
        inspect_index(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="`near` must be at least 0 and below 1. Received: near=2"):
        inspect_index(tmp_path / "one", near=2)


def test_files_are_checked_before_any_work(divided, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "findings.csv").write_text("mine")
    with pytest.raises(FileExistsError, match="findings.csv' exists"):
        inspect_index(divided, to=tmp_path / "out")
    assert (tmp_path / "out" / "findings.csv").read_text() == "mine"
    inspect_index(divided, to=tmp_path / "out", overwrite=True)
    lines = (tmp_path / "out" / "findings.csv").read_text().splitlines()
    assert lines[0] == "kind,file,other_file,label,suggested_label,score,split,other_split,why" and len(lines) == 6
    assert lines[2] == "leak,train/cat/00.png,test/cat/copy.bmp,cat,,1.0000,train,test,the same pixels"
