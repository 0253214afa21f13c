import numpy as np

from keras_vit.inspecting import exact
from keras_vit.inspecting.pictures import Pictures


def found(digests, splits=None):
    names = [str(i) for i in range(len(digests))]
    pictures = Pictures(names, names).divided(splits or [None] * len(names))
    groups = exact.groups(np.array(digests, "uint8")[:, None], pictures.splits)
    return [(one.kind, one.file, one.other) for one in exact.find(pictures, groups, np.arange(len(names)))], groups


def test_each_copy_is_one_row():
    rows, groups = found([5, 7, 5, 5, 9])
    assert rows == [("exact", "2", "0"), ("exact", "3", "0")]
    assert groups.first.tolist() == [True, True, False, False, True]


def test_a_leak_names_the_training_picture_and_the_measured_one():
    rows, groups = found([5, 5, 5, 7], ["test", "train", "train", "train"])
    assert sorted(rows) == [("exact", "2", "1"), ("leak", "1", "0"), ("leak", "2", "0")]
    assert groups.first.tolist() == [True, True, False, True]


def test_of_three_splits_the_one_that_measures_is_kept():
    rows, _ = found([5, 5, 5], ["validation", "train", "test"])
    assert sorted(rows) == [("leak", "0", "2"), ("leak", "1", "2")]
    assert sorted(found([5, 5, 5], ["test", "train", "test"])[0]) == [
        ("exact", "2", "0"),
        ("leak", "1", "0"),
        ("leak", "1", "2"),
    ]


def test_pictures_outside_the_splits_do_not_leak():
    assert found([5, 5, 5], [None, "train", None])[0] == [("exact", "2", "0")]


def test_a_million_equal_pictures_are_a_million_rows():
    """And not their square."""
    rows, _ = found(np.zeros(2000))
    assert len(rows) == 1999
