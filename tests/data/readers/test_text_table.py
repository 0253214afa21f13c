import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.readers import text_table


def source(path, split="all", **data):
    return sources.load(Data(source=f"table:{path}", **data), split, ("texts",))


def test_two_columns_and_lists(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"source": "Haus", "text": ["house", "home"]}\n{"source": "Hund", "text": "dog"}\n'
    )
    found = source(tmp_path / "a.jsonl")
    pairs = dict(zip(found.images.tolist(), found.targets["texts"].tolist()))
    assert pairs == {("Haus",): ("house", "home"), ("Hund",): ("dog",)}


def test_rows_with_one_source_stay_together(tmp_path):
    """So that no text to translate is in two parts, whatever its translations."""
    lines = [f"word {i // 2},text {i}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["german,english", *lines]))
    columns = {"sources": "german", "texts": "english"}
    parts = [source(tmp_path / "a.csv", split, columns=columns) for split in ("all[:70%]", "all[70%:]")]
    assert sum(map(len, parts)) == 40 and not {*parts[0].images} & {*parts[1].images}
    again = source(tmp_path / "a.csv", "all[:70%]", columns=columns)
    assert again.fingerprint() == parts[0].fingerprint() != parts[1].fingerprint()


def test_an_empty_cell_is_an_error_or_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("source,text\nHaus,house\nHund,\n")
    with pytest.raises(ValueError, match=r"1 rows of .* are wrong. The first: line 3: 'text' is empty"):
        source(tmp_path / "a.csv")
    with pytest.warns(UserWarning, match="1 rows of a.csv"):
        assert len(source(tmp_path / "a.csv", bad_images="skip")) == 1


@pytest.mark.parametrize(
    ("name", "text", "data", "message"),
    [
        ("a.txt", "", {}, r"A table must end in .csv, .jsonl, .parquet. .* Received: .*a.txt"),
        ("a.csv", "x,y\n1,2\n", {}, "must have a column of sources: source, sources, input, .* Received: x, y"),
        ("a.csv", "x,y\n1,2\n", {"columns": {"sources": "z", "texts": "y"}}, "has no column 'z'"),
        ("a.csv", "x,y\n1,2\n", {"columns": {"labels": "y"}}, "may name sources and texts. Received: 'labels'"),
    ],
)
def test_what_is_no_such_table(name, text, data, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        source(tmp_path / name, **data)


def test_no_file_and_other_targets(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        source(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("source,text\nHaus,house\n")
    with pytest.raises(ValueError, match="A table of texts is for Translate. Received: .* for labels"):
        sources.load(Data(source=f"table:{tmp_path / 'a.csv'}"), "all", ("labels",))


def test_arrays():
    found = text_table.from_arrays((["Haus", "Haus"], [["house", "home"], ["house"]]))
    assert found.groups[0] == found.groups[1] and found.targets["texts"][0] == ("house", "home")
    ids = np.int32([[3, 1], [4, 1]])
    assert text_table.from_arrays((ids, ids)).images.dtype == "int32"
    with pytest.raises(ValueError, match="Texts must be a list of strings"):
        text_table.from_arrays((["Haus"], ["house", "home"]))


def test_a_source_is_one_text(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"source": ["Haus", "Heim"], "text": "house"}\n')
    with pytest.raises(ValueError, match="line 1: A source must be one text. Received: 2"):
        source(tmp_path / "a.jsonl")
    with pytest.raises(ValueError, match="A source must be one text. Received: 2"):
        text_table.from_arrays(([["Haus", "Heim"], "Hund"], ["house", "dog"]))
