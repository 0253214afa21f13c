import csv
import json

import pytest

from keras_vit.runs import tables

pytestmark = pytest.mark.backend
ROWS = [{"image_id": "ä\udcff\n.png", "name": "a, b", "value": 0.1}, {"image_id": "b", "name": "c", "value": 1e-9}]
BOXES = [{"image_id": "a.png", "category": "x", "bbox": [1.5, 2.0, 3.0, 4.25], "score": 0.5}]


def write(tmp_path, rows, columns):
    paths = {name: tmp_path / f"rows.{name}" for name in tables.KINDS}
    with tables.written(paths, columns) as add:
        for row in rows:
            add([row])
        assert not any(tmp_path.iterdir())  # nothing to be left by a kill
    with open(paths["csv"], **tables.TEXT) as file:
        return paths["json"].read_bytes(), [*csv.DictReader(file)]


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], [], [{"nested": [{"a": None}], "deep": {}}]])
def test_json_is_that_of_the_whole_list(rows, tmp_path):
    columns = [*rows[0]] if rows else ["name"]
    assert write(tmp_path, rows, columns)[0].decode() == json.dumps(rows, indent=1) + "\n"


def test_csv_has_the_same_rows_and_a_column_for_each_number_of_a_box(tmp_path):
    assert [{**row, "value": float(row["value"])} for row in write(tmp_path, ROWS, [*ROWS[0]])[1]] == ROWS
    (tmp_path / "b").mkdir()
    columns = ("image_id", "category", "x", "y", "width", "height", "score")
    values = ["a.png", "x", "1.5", "2.0", "3.0", "4.25", "0.5"]
    assert write(tmp_path / "b", BOXES, columns)[1] == [dict(zip(columns, values))]


def test_json_has_no_nan(tmp_path):
    with (
        pytest.raises(ValueError, match="not JSON compliant"),
        tables.written({"json": tmp_path / "a.json"}, ("value",)) as add,
    ):
        add([{"value": float("nan")}])
    assert not any(tmp_path.iterdir())


def test_both_are_written_or_neither(tmp_path):
    paths = {"json": tmp_path / "a.json", "csv": tmp_path / "b" / "a.csv"}
    (tmp_path / "b").mkdir()

    def without_a_place():
        with tables.written(paths, [*ROWS[0]]) as add:
            add(ROWS)
            (tmp_path / "b").rmdir()

    with pytest.raises(OSError, match="a.csv' could not be written and is unchanged: No such file"):
        without_a_place()
    assert not any(tmp_path.iterdir())


def test_an_error_leaves_no_file(tmp_path):
    def stopped():
        with tables.written({"json": tmp_path / "a.json"}, ("name",)) as add:
            add(ROWS)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not any(tmp_path.iterdir())
