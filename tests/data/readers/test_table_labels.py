import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers import table, table_labels


@pytest.fixture
def read(tmp_path):
    """Returns a function that writes a table of texts, or of JSON records, and reads its labels."""

    def made(rows, given=None, classes=None, inside="", skip=False):
        kind = "jsonl" if isinstance(rows[0], dict) else "csv"
        rows = [{"file_name": f"{i}.png", **row} for i, row in enumerate(rows)] if kind == "jsonl" else rows
        for i in range(len(rows)):
            (tmp_path / f"{i}.png").touch()
        lines = map(json.dumps, rows) if kind == "jsonl" else rows
        (tmp_path / f"metadata.{kind}").write_text("\n".join(lines), encoding="utf-8")
        columns = {"multilabels": given} if given else {}
        columns |= {"classes": classes} if classes else {}
        found = table.read(tmp_path / f"metadata.{kind}", tmp_path / inside, columns, ("multilabels",), skip=skip)
        return found.class_names, found.targets["multilabels"].tolist()

    return made


def texts(*cells, column="tags"):
    return [f"file_name,{column}", *(f'{i}.png,"{cell}"' for i, cell in enumerate(cells))]


def test_names_in_a_cell(read):
    names, found = read(texts("dog; cat", "", "cat;;cat ;", "hot dog"))
    assert names == ("cat", "dog", "hot dog")
    assert found == [[1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]]  # an empty cell: it has none of them
    assert read(texts("10;9", "2"))[0] == ("2", "9", "10")
    assert read(texts("a, b", "a"), {"names": "tags", "separator": ","}) == (("a", "b"), [[1, 1], [1, 0]])
    assert read(texts("a b", "b", column="kinds"), {"names": "kinds", "separator": " "})[0] == ("a", "b")
    assert read(texts("a, b", "a"), {"separator": ","})[1] == [[1, 1], [1, 0]]
    assert read(texts("a", "b", column="labels"))[1] == [[1, 0], [0, 1]]  # found by its name
    assert read(texts("", "")) == ((), [[], []])
    assert read(texts("", ""), "tags", classes=("a", "b"))[1] == [[0, 0], [0, 0]]


def test_lists_of_json(read):
    rows = [{"tags": ["b", "a, c"]}, {"tags": []}, {"tags": None}, {}, {"tags": "a;b"}, {"tags": 3}, {"tags": [3, "b"]}]
    names, found = read(rows)
    assert names == ("3", "a", "a, c", "b")
    assert found == [[0, 0, 1, 1], [0] * 4, [0] * 4, [0] * 4, [0, 1, 0, 1], [1, 0, 0, 0], [1, 0, 0, 1]]


def test_lists_written_as_text(read):
    """As pandas writes a column of lists, and JSON."""
    cells = ("['cat', 'hot dog']", '["it\'s", "cat"]', "[]", "[3, 4]", "['a;b',]", "cat", "")
    rows = ["file_name\ttags", *(f"{i}.png\t{cell}" for i, cell in enumerate(cells))]
    names, found = read([row.replace('"', '""').replace("\t", '\t"') + '"' for row in rows])
    assert names == ("3", "4", "a;b", "cat", "hot dog", "it's")
    assert [[name for name, has in zip(names, row) if has] for row in found] == [
        ["cat", "hot dog"],
        ["cat", "it's"],
        [],
        ["3", "4"],
        ["a;b"],
        ["cat"],
        [],
    ]
    assert read(texts("[a]", "b"), classes=("[a]", "b"))[1] == [[1, 0], [0, 1]]


def test_lists_of_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "0.png").touch(), (tmp_path / "1.png").touch()
    data = {"file_name": ["0.png", "1.png"], "tags": [["b", "a"], []], "cat": [1.0, None], "dog": [True, False]}
    parquet.write_table(pyarrow.table(data), tmp_path / "metadata.parquet")
    for given, expected in (("tags", [[1, 1], [0, 0]]), (["cat", "dog"], [[1, 1], [-1, 0]])):
        found = table.read(tmp_path / "metadata.parquet", tmp_path, {"multilabels": given}, ("multilabels",))
        assert found.targets["multilabels"].tolist() == expected and found.targets["multilabels"].dtype == np.int8


def test_a_column_for_each_class(read):
    rows = ["file_name,dog,cat", "0.png,1,0", "1.png,yes,NO", "2.png,True,false", "3.png,,-1", "4.png,1.0,nan"]
    names, found = read(rows, ["dog", "cat"])
    assert names == ("dog", "cat")  # as they are said
    assert found == [[1, 0], [1, 0], [1, 0], [-1, -1], [1, -1]]
    assert read([{"a": True, "b": 0}, {"a": None}], ["a", "b"])[1] == [[1, 0], [-1, -1]]


def test_names_can_be_fixed(read):
    names, found = read(texts("b", "a;b"), classes=("b", "c", "a"))
    assert names == ("b", "c", "a") and found == [[1, 0, 0], [1, 0, 1]]
    assert read(texts("a", "null"), classes=("a", "null"))[1] == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="line 3: 'tags' must have names of `classes` only. Received: 'wolf'"):
        read(texts("b", "a;wolf"), classes=("a", "b"))


def test_an_accent_is_written_in_one_way(read):
    assert read(texts("caf\u00e9", "cafe\u0301")) == (("caf\u00e9",), [[1], [1]])
    assert read(texts("caf\u00e9", "b"), classes=("cafe\u0301", "b")) == (("cafe\u0301", "b"), [[1, 0], [0, 1]])


BAD = [
    (texts("cat,dog", "dog", "cat"), None, "'cat,dog' looks like several names. Say .*'separator': ','}}, or ';' if"),
    (texts("scab rust", "rust", "scab"), None, "'tags' has 'scab' and 'rust', so 'scab rust' looks like .*: ' '}"),
    (texts("cat,dog", "dog,fox"), None, "'tags' has 'dog,fox', so 'cat,dog' looks like several names.*: ','}}, or ';'"),
    (texts("a|b", "b|c", "c"), None, "'tags' has 'b|c', so 'a|b' looks .*: '|'}}"),
    (texts("clear primary", "haze primary", "clear primary water"), None, "so 'clear primary' looks .*: ' '}}"),
    (texts("0", "1", column="cat"), "cat", "'cat' must have names. Columns of 0 and 1, .* a list: .*['cat', ...]"),
    (["file_name,cat", "0.png,2"], ["cat"], "'cat' must be 0 or 1, yes or no, .* where unknown. Received: '2'"),
    (["file_name,cat", "0.png,1"], ["cat", "cat"], "must have a column each. Received: two of 'cat'"),
    (texts("['cat' 'dog']"), None, "a list of texts in quotes with commas between. Received: .*'cat' 'dog'"),
    (texts("[cat, dog]"), None, "a list of texts in quotes with commas between. Received: '.cat, dog.'"),
    (texts("a", "nan"), None, "line 3: 'tags' must be the name of a class, not of a missing value. Received: 'nan'"),
    (texts("a", "a;None"), None, "line 3: 'tags' must be .* not of a missing value. Received: 'None'"),
    ([{"tags": ["a\ud800"]}], None, r"'tags' must be the name of a class, one line of UTF-8. Received: 'a.ud800'"),
    ([{"tags": ["a\0"]}], None, "'tags' must be the name of a class, one line of UTF-8. Received: "),
    (texts("[null]"), None, "'tags' must be the name of a class. Received: None"),
    ([{"tags": [True]}], None, "'tags' must be the name of a class. Received: True"),
    ([{"tags": {"a": 1}}], None, "'tags' must be the name of a class. Received: {'a': 1}"),
    (texts("a"), {"names": "tags", "separator": ""}, "separator of names must be a text. Received: separator=''"),
    (texts("a"), {"names": "tags", "sep": ","}, "must be a dictionary with keys among names, separator. Received: {"),
    (["file_name,a,b", "0.png,,"], {"names": ["a", "b"]}, "labels must be in one column. Received: 'a', 'b'"),
    (["file_name,x", "0.png,a"], None, "no column of multilabels, such as 'labels' or 'tags'"),
]


@pytest.mark.parametrize("rows, given, message", BAD)
def test_what_cannot_be_labels_is_one_sentence(read, rows, given, message):
    with pytest.raises(ValueError, match=message):
        read(rows, given)


@pytest.mark.parametrize(
    "cells",
    [
        ("traffic light", "traffic sign", "stop sign"),
        ("traffic light", "light", "car"),
        ("Pepper, hot; maize", "Pepper, mild"),
        ("cat,dog", "fox"),
    ],
)
def test_names_of_several_words_stay(read, cells):
    names, _ = read(texts(*cells))
    assert set(names) == {name for cell in cells for name in cell.split("; ")}
    assert read(texts("a,b", "b,c"), {"separator": ";"})[0] == ("a,b", "b,c")


def test_time_and_memory_grow_with_the_labels():
    maker = table_labels.several_labels(("tags",), {})
    for i in range(20_000):
        maker.add(maker.parse([f"a;b{i % 7}"]))
    made = maker.made()
    assert made.shape == (20_000, 8) and made.sum() == 40_000
    assert maker.rows.itemsize * len(maker.rows) == 4 * 40_000
