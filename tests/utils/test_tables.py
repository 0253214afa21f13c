import csv

from keras_vit.utils import tables


def test_columns_are_aligned_by_places_of_the_terminal():
    lines = tables.aligned([["name", "x"], ["犬", "10"], ["e\u0301te\u0301", "2"]], right=[1])
    assert lines == ["name   x", "犬    10", "e\u0301te\u0301    2"]
    assert [*map(tables.places, lines)] == [8, 8, 8]


def test_a_long_cell_is_cut_at_whole_letters():
    assert tables.cut("x" * 10, 10) == "x" * 10
    assert tables.cut("x" * 11, 10) == "x" * 7 + "..."
    assert tables.cut("犬" * 6, 10) == "犬犬犬..."
    assert tables.text([{"name": "y" * 200, "val_accuracy": 0.5}]).splitlines() == [
        f"name{' ' * 96}  val_accuracy",
        f"{'y' * 97}...  50.00%",
    ]


def test_rows_are_written(tmp_path):
    tables.write(tmp_path / "a.csv", [{"a": 1}, {"a": 2, "b": "x,y"}])
    with open(tmp_path / "a.csv", newline="") as file:
        assert [*csv.DictReader(file)] == [{"a": "1", "b": ""}, {"a": "2", "b": "x,y"}]
