import codecs
import json

import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers import table_file

ROWS = [(2, ["a.png", "cat"]), (3, ["b.png", None])]


def cells(path, *columns):
    return list(table_file.read(path, columns or ["file_name", "label"]))


@pytest.mark.parametrize(
    "content",
    [
        b"file_name,label\na.png,cat\nb.png,\n",
        b"file_name;age;label\r\na.png;3;cat\r\nb.png;;\r\n",
        b"file_name\tlabel\na.png\tcat\nb.png",
        b'"file_name"|label\na.png| cat \n"b.png"|\n\n',
        codecs.BOM_UTF8 + b"label,file_name\ncat,a.png\n,b.png\n",
        "file_name,label\na.png,cat\nb.png,\n".encode("utf-16"),
        b",file_name,label,,\n0,a.png,cat,,\n1,b.png,,,\n",
    ],
)
def test_any_separator_and_marked_encoding(tmp_path, content):
    path = tmp_path / "metadata.csv"
    path.write_bytes(content)
    assert cells(path) == ROWS


def test_cells_of_several_lines_and_quoted_separators(tmp_path):
    path = tmp_path / "metadata.csv"
    path.write_text('file_name,label\n"a, b.png","two\nlines"\nc.png,caf\u00e9\n', encoding="utf-8")
    assert cells(path) == [(3, ["a, b.png", "two\nlines"]), (4, ["c.png", "caf\u00e9"])]


def test_json_lines(tmp_path):
    path = tmp_path / "metadata.jsonl"
    records = [{"file_name": "a.png", "label": "cat"}, {"file_name": "b.png", "age": 3}]
    path.write_text("\n\n".join(map(json.dumps, records)))
    assert table_file.columns_of(path) == ["file_name", "label", "age"]
    assert cells(path) == [(1, ["a.png", "cat"]), (3, ["b.png", None])]


def test_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "metadata.parquet"
    parquet.write_table(pyarrow.table({"file_name": ["a.png", "b.png"], "age": [3, 4], "label": ["cat", None]}), path)
    assert cells(path) == [(1, ["a.png", "cat"]), (2, ["b.png", None])]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("csv", b"", "must begin with the names of its columns. Received: ''"),
        ("csv", b"file_name,kind\na.png,1\n", "has no column 'label'. It has: 'file_name', 'kind'"),
        ("csv", b"file_name,label,label\n", "must have different names. Received: two of 'label'"),
        ("csv", b"file_name,label\na.png,b,c\n", r"must have 2 cells, as its header. Received: 3 in line 2: \['a.png'"),
        (
            "csv",
            b"file_name,label\na.png,caf\xe9\n",
            r"save it as that. Received: the byte b'\\xe9' in line 2",
        ),
        ("csv", b'file_name,label\na.png,"x\n', "is no CSV at line 2: unexpected end of data"),
        ("jsonl", b"", "Received: an empty file"),
        ("jsonl", b"[1]\n", r"one JSON object a line. Received: \[1\]"),
        ("jsonl", b'{"file_name": "a.png"}\n{"file\n', "one JSON object a line. Line 2: "),
        ("parquet", b"no table", "is no Parquet file"),
    ],
)
def test_what_is_no_table_is_named(tmp_path, name, content, message):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"metadata.{name}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        cells(path)


def test_a_folder_has_one_table(tmp_path):
    assert table_file.find(tmp_path) is None
    (tmp_path / "metadata.csv").touch()
    assert table_file.find(tmp_path) == tmp_path / "metadata.csv"
    (tmp_path / "metadata.jsonl").touch()
    with pytest.raises(ValueError, match=r"must have one table. Received: metadata.csv, metadata.jsonl"):
        table_file.find(tmp_path)


def test_names_of_columns_in_either_form_of_unicode(tmp_path):
    composed, apart = "cat\u00e9gorie", "cate\u0301gorie"
    (tmp_path / "metadata.csv").write_text(f"file_name,{apart}\na.png,x\n", encoding="utf-8")
    (tmp_path / "metadata.jsonl").write_text(json.dumps({"file_name": "a.png", apart: "x"}), encoding="utf-8")
    for name in ("metadata.csv", "metadata.jsonl"):
        assert table_file.columns_of(tmp_path / name) == ["file_name", composed]
        assert [row for _, row in cells(tmp_path / name, composed)] == [["x"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000, "Line 2: its brackets are too deep"),
        ('{"a": 1, "a": 2}', "Line 2: the key 'a' is there twice"),
        ('{"caf\u00e9": 1, "cafe\u0301": 2}', "Line 2: the key 'caf\u00e9' is there twice"),
        ('{"a": ' + "1" * 5000 + "}", "Line 2: Exceeds the limit"),
        ("[1]", r"Received: \[1\] in line 2"),
    ],
)
def test_lines_of_json_that_are_no_rows(tmp_path, line, message):
    path = tmp_path / "metadata.jsonl"
    path.write_text(f'{{"file_name": "a.png", "label": "x"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        cells(path)


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl"])
def test_a_line_without_end(tmp_path, name, monkeypatch):
    monkeypatch.setattr(table_file, "MOST_LINE", 1000)
    (tmp_path / name).write_text('{"file_name,label": "a.png"}\n' + "x" * 2000)
    with pytest.raises(ValueError, match="must have at most 1000 bytes. Received: line 2"):
        cells(tmp_path / name, "file_name,label" if name.endswith("l") else '{"file_name')


def test_many_columns_take_time_in_proportion(tmp_path):
    path, count = tmp_path / "metadata.csv", 50_000
    names = [f"c{i}" for i in range(count)]
    path.write_text(f"file_name,{','.join(names)}\na.png,{','.join('1' * count)}\n")
    ((line, row),) = table_file.read(path, names)  # of a list for each name, minutes
    assert line == 2 and row == ["1"] * count
