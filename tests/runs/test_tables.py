import csv
import errno
import io
import json

import pytest

from keras_vit.runs import tables

pytestmark = pytest.mark.backend
ROWS = [{"image_id": "ä\udcff\n.png", "name": "a, b", "value": 0.1}, {"image_id": "b", "name": "c", "value": 1e-9}]
MASK = {"size": [9, 9], "counts": "ab"}
BOXES = [{"image_id": "a.png", "category": "x", "bbox": [1.5, 2.0, 3.0, 4.25], "score": 0.5}]


def write(tmp_path, rows, columns):
    paths = {name: tmp_path / f"rows.{name}" for name in tables.KINDS}
    with tables.written(paths, columns) as add:
        for row in rows:
            add([row])
        assert not any(tmp_path.iterdir())  # nothing to be left by a kill
    return paths["json"].read_bytes(), rows_in(paths["csv"])


def rows_in(path):
    with open(path, **tables.TEXT) as file:
        return [*csv.DictReader(file)]


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
    (tmp_path / "c").mkdir()
    table, rows = write(tmp_path / "c", [{**BOXES[0], "segmentation": MASK}], columns)
    assert rows == [dict(zip(columns, values))] and json.loads(table)[0]["segmentation"] == MASK


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


class Full(io.StringIO):
    """A file on a full disk, where nothing is flushed."""

    def seek(self, *_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("full", [["json", "csv"], ["csv"]])
def test_a_full_disk_names_the_table_and_leaves_none(full, tmp_path, monkeypatch):
    """The rows are in a file without a name until they are flushed; an error is that of the first one."""
    names, real = iter(["json", "csv"]), tables.tempfile.TemporaryFile
    opened = lambda *given, **more: Full() if next(names) in full else real(*given, **more)  # noqa: E731
    monkeypatch.setattr(tables.tempfile, "TemporaryFile", opened)
    with pytest.raises(OSError, match=rf"^'.*a\.{full[0]}' could not be written: No space left on device$"):
        write_to({name: tmp_path / f"a.{name}" for name in ("json", "csv")})
    assert not any(tmp_path.iterdir())


def test_on_a_full_disk_another_error_is_still_told(tmp_path, monkeypatch):
    monkeypatch.setattr(tables.tempfile, "TemporaryFile", lambda *_, **__: Full())
    with pytest.raises(ValueError, match="wrong"):
        stopped(tmp_path / "a.json", ValueError("wrong"))


def test_a_folder_that_is_read_only_is_told_by_the_name_of_the_table(tmp_path, monkeypatch):
    def read_only(*_, dir, **__):
        raise OSError(errno.EROFS, "Read-only file system", f"{dir}/tmpabcdefgh")

    monkeypatch.setattr(tables.tempfile, "TemporaryFile", read_only)
    with pytest.raises(OSError, match=r"^'.*a\.csv' could not be written: Read-only file system$"):
        write_to({"csv": tmp_path / "a.csv"})


def write_to(paths):
    with tables.written(paths, [*ROWS[0]]) as add:
        add(ROWS)


def stopped(path, error, rows=ROWS):
    with tables.written({"json": path, "csv": path.with_suffix(".csv")}, [*ROWS[0]]) as add:
        for row in rows:
            add([row])
        raise error


def test_an_error_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="wrong"):
        stopped(tmp_path / "a.json", ValueError("wrong"))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("count", [0, 1, 2])
def test_ctrl_c_leaves_what_was_done(count, tmp_path, capsys):
    with pytest.raises(KeyboardInterrupt):
        stopped(tmp_path / "a.json", KeyboardInterrupt(), ROWS[:count])
    if not count:
        assert not any(tmp_path.iterdir())
        return
    assert json.loads((tmp_path / "a.json").read_text()) == ROWS[:count]
    assert len(rows_in(tmp_path / "a.csv")) == count
    assert capsys.readouterr().err.count("has what was done until then") == 2


def test_keypoints_have_a_column_for_each_number(tmp_path):
    columns = ["image_id", "x", "y", "width", "height", *tables.of_points(["nose", "ear"])]
    with tables.written({"csv": tmp_path / "a.csv"}, columns) as add:
        add([{"image_id": "a", "bbox": [1, 2, 3, 4], "keypoints": [5, 6, 0.5, 7, 8, 0.25]}])
    (row,) = rows_in(tmp_path / "a.csv")
    assert row["keypoint nose x"] == "5" and row["keypoint ear score"] == "0.25" and row["height"] == "4"


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("a.txt", ValueError, "must end in .csv"),
        ("there.csv", FileExistsError, "exists"),
        ("no/a.csv", ValueError, "must exist"),
    ],
)
def test_a_table_that_cannot_be_written_is_told_before(name, error, said, tmp_path):
    (tmp_path / "there.csv").touch()
    with pytest.raises(error, match=said):
        tables.check({"csv": tmp_path / name})
