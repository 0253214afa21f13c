import re

import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers import parquet, table_file

pyarrow = pytest.importorskip("pyarrow")
files = pytest.importorskip("pyarrow.parquet")


def cells(path, *columns):
    return list(table_file.read(path, columns or ("file_name", "label")))


def write(path, columns, **options):
    files.write_table(pyarrow.table(columns), path, **options)
    return path


def test_rows_of_more_than_one_batch(tmp_path):
    names = [f"{i}.png" for i in range(2500)]
    path = write(tmp_path / "metadata.parquet", {"file_name": names, "label": [f"c{i % 3}" for i in range(2500)]})
    found = cells(path)
    assert found[0] == (1, ["0.png", "c0"]) and found[-1] == (2500, ["2499.png", "c0"]) and len(found) == 2500
    assert cells(path, "label", "label", "file_name")[1] == (2, ["c1", "c1", "1.png"])


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "zstd"}])
@pytest.mark.parametrize("column", ["text", "list", "struct"])
def test_a_cell_that_unpacks_to_more_than_a_cell_may_have(tmp_path, column, options):
    long = "x" * (parquet.MOST_CELL + 1)
    value = {"text": long, "list": [long], "struct": {"a": long}}[column]
    short = {"text": "y", "list": ["y"], "struct": {"a": "y"}}[column]
    columns = {"file_name": [f"{i}.png" for i in range(5000)], "label": [value] * 3000 + [short] * 2000}
    path = write(tmp_path / "metadata.parquet", columns, **options)
    assert path.stat().st_size < 2**26
    with pytest.raises(ValueError, match=r"metadata.parquet' .*(rows from 1 to 1024: a cell has more|in 5000 rows)"):
        cells(path)
    write(path, {"file_name": ["a.png"], "label": ["x" * 2**22]}, **options)
    with pytest.raises(ValueError, match="must have at most 131072 bytes. Received: .* of 'label' in 1 rows"):
        cells(path)


def test_damage_names_the_file_and_the_rows(tmp_path):
    names = [f"{i}.png" for i in range(20)]
    path = write(tmp_path / "metadata.parquet", {"file_name": names, "label": ["x", "y"] * 10})
    good, said = path.read_bytes(), set()
    for at in range(4, len(good), 7):
        damaged = bytearray(good)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        try:
            cells(path)
        except ValueError as error:
            said.add(str(error))
    assert all("metadata.parquet" in text for text in said)
    said = {found for text in said for found in re.findall("is no Parquet file|rows from 1 to 1024", text)}
    assert {"is no Parquet file", "rows from 1 to 1024"} <= said


def test_two_columns_of_one_name(tmp_path):
    path, columns = tmp_path / "metadata.parquet", [pyarrow.array(["a.png"]), pyarrow.array(["x"])]
    files.write_table(pyarrow.table([*columns, columns[1]], names=["file_name", "label", "label"]), path)
    with pytest.raises(ValueError, match="must have different names. Received: two of 'label'"):
        cells(path)
