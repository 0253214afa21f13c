import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.memory import Source  # noqa: E402
from keras_vit.data.readers import texts  # noqa: E402

IMAGES = np.zeros((2, 4, 4, 3), "uint8")


def test_one_text_or_several_for_each_image():
    found = texts.of_array(["a cat", [" two ", "", "words"]], IMAGES)
    assert found.dtype == object and [*found] == [("a cat",), ("two", "words")]
    assert [*texts.of_array(np.array(["a", "b"]), IMAGES)] == [("a",), ("b",)]
    assert [*texts.of_array(tf.constant(["a", "b"]), IMAGES)] == [("a",), ("b",)]
    assert [*texts.of_array([b"a \xc3\xa9", "b"], IMAGES)] == [("a é",), ("b",)]


def test_ids_stay_ids():
    found = texts.of_array(np.array([[1, 2], [3, 0]]), IMAGES)
    assert found.dtype == np.int32 and found.tolist() == [[1, 2], [3, 0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a"], "for 2 images. Received: 1 of them"),
        ("ab", "for 2 images. Received: 'ab'"),
        (["a", " "], "Each image must have a text. Received: ' ' of image 1"),
        (["a", []], r"Each image must have a text. Received: \[\] of image 1"),
        (["a", 7], "Texts of image 1: a text must be a string. Received: 7"),
        (["a", ["b", float("nan")]], "Texts of image 1: a text must be a string. Received: nan"),
        (["['a']", "[ ]"], "Each image must have a text. Received: an empty list"),
        ({"a", "b"}, "Texts must be a list of strings, .* for 2 images. Received: {"),
        ({"a": 1, "b": 2}, "Texts must be a list of strings, .* for 2 images. Received: {'a': 1"),
        (np.array([[1, -2], [3, 0]]), r"Ids of words must be .* \(2, length\). Received: shape=\(2, 2\), from -2"),
        (np.array([1, 2]), r"Received: shape=\(2,\), from 1"),
    ],
)
def test_what_is_no_text_for_each_image(values, message):
    with pytest.raises(ValueError, match=message):
        texts.of_array(values, IMAGES)


def test_cells_of_a_table():
    rows = texts.TextColumns(("name", "tags"))
    rows.add(rows.parse(["a cat", None]))
    rows.add(rows.parse([["one", "two"], "three"]))
    rows.add(rows.parse(["elsewhere", None]), inside=False)
    assert [*rows.made()] == [("a cat",), ("one", "two", "three")]
    with pytest.raises(ValueError, match="'name' and 'tags' are empty"):
        rows.parse([None, " "])


def test_cells_that_are_lists_in_a_text():
    rows = texts.TextColumns(("name", "tags"), {"texts": {"names": ["name", "tags"], "separator": ";"}})
    assert rows.parse(["a cat", "pet; animal ;"]) == ("a cat", "pet", "animal")


@pytest.mark.parametrize("cell", ['["a \\ud83d\\ude97", "b, c"]', "['a 🚗', 'b, c']", ["['a 🚗']", None, "b, c"]])
def test_lists_that_were_printed_are_lists_where_every_row_has_one(cell):
    rows = texts.TextColumns(("caption",))
    for each in (cell, "['one']"):
        rows.add(rows.parse([each]))
    assert [*rows.made()] == [("a 🚗", "b, c"), ("one",)]
    assert [*texts.of_array(["['a', 'b']", '["c"]'], IMAGES)] == [("a", "b"), ("c",)]
    assert texts.flat(["[laughs] a man", "[red]"]) == ("[laughs] a man", "[red]")
    with pytest.raises(ValueError, match="'caption' is empty"):
        rows.parse(["[]"])


def test_a_line_may_look_like_a_list():
    rows = texts.TextColumns(("line",))
    for cell in ("['a']", "total[0]", "[3]"):
        rows.add(rows.parse([cell]))
    with pytest.warns(UserWarning, match="1 of 3 texts of 'line' look like lists, and are read as they are"):
        assert [*rows.made()] == [("['a']",), ("total[0]",), ("[3]",)]


@pytest.mark.parametrize("word", ["None", "null", "NaN", "nan"])
def test_words_for_a_missing_value_are_words(word):
    rows = texts.TextColumns(("text",))
    rows.add(rows.parse([word]))
    with pytest.warns(UserWarning, match=f"'text' has '{word}', which programs also write for a missing value"):
        assert [*rows.made()] == [(word,)]
    with pytest.warns(UserWarning, match=f"there are '{word}', which programs also write"):
        assert [*texts.of_array(["a", word], IMAGES)] == [("a",), (word,)]


def test_rows_of_one_file_become_one_image_with_all_its_texts():
    paths = np.array(["a.png", "b.png", "a.png", "a.png"], object)
    rows = texts.together([("one",), ("two",), ("three", "one"), ("four",)])
    found = texts.by_image(Source(paths, {"texts": rows}, files=True, groups=np.array([1, 2, 1, 1])))
    assert found.images.tolist() == ["a.png", "b.png"] and found.groups.tolist() == [1, 2]
    assert [*found.targets["texts"]] == [("one", "three", "four"), ("two",)]
    single = Source(paths[:2], {"texts": rows[:2]}, files=True)
    assert texts.by_image(single) is single
