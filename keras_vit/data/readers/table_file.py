"""Reads the cells of a table: CSV, JSON lines or Parquet, in rows, each with its line in the file."""

import codecs
import collections
import contextlib
import csv
import io
import itertools
import json
import os

from keras_vit.utils.names import composed

NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
SEPARATORS = ",;\t|"
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
SHOWN = 20  # columns that an error names
MOST_LINE = 2**26  # bytes, or characters, of a line


def find(folder):
    """Returns the table of a folder, a path, or `None`; raises ValueError if there are two."""
    found = [folder / name for name in NAMES if (folder / name).is_file()]
    if len(found) > 1:
        raise ValueError(f"{str(folder)!r} must have one table. Received: {', '.join(path.name for path in found)}")
    return found[0] if found else None


def is_one(path):
    """Returns whether a path is named like a table, which is no file that is left out."""
    return os.path.basename(path) in NAMES


def columns_of(file):
    """Returns the names of a table's columns."""
    with _opened(file) as (header, _):
        return header


def read(file, columns):
    """Yields the cells of some columns of a table, row by row.

    Args:
        file: Path of the table.
        columns: Names of columns.

    Yields:
        Pairs of the row's line in the file (in Parquet its number), from 1, and a list of its cells: texts of a CSV,
        else what the file has; `None` where it has nothing.

    Raises:
        ValueError: For a file that is no such table, an unknown column, or a row with more cells than the header.
    """
    with _opened(file) as (header, rows):
        known = set(header)
        for name in columns:
            if name not in known:
                shown = ", ".join(map(repr, header[:SHOWN])) + (", ..." if len(header) > SHOWN else "")
                raise ValueError(f"{str(file)!r} has no column {name!r}. It has: {shown}")
        yield from rows(columns)


@contextlib.contextmanager
def _opened(file):
    """Opens a table: the names of its columns, and the function from some of them to rows."""
    kind = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}[file.suffix]
    with open(file, "rb") as stream:
        yield kind(file, stream)


def _csv(file, stream):
    lines = _lines(file, stream)
    first = next(lines, "")
    if not first.strip():
        raise ValueError(f"{str(file)!r} must begin with the names of its columns. Received: {first!r}")
    separator = max(SEPARATORS, key=first.count)
    reader = csv.reader(itertools.chain([first], lines), delimiter=separator, strict=True)
    header = [composed(name.strip()) for name in _next(file, reader)]
    check_different(file, filter(None, header))  # spreadsheets leave names empty

    def rows(columns):
        places = {name: place for place, name in enumerate(header)}
        places = [places[name] for name in columns]
        while (row := _next(file, reader)) is not None:
            if len(row) > len(header):
                raise ValueError(
                    f"Rows of {str(file)!r} must have {len(header)} cells, as its header. Received: {len(row)} in line "
                    f"{reader.line_num}: {row!r:.200}"
                )
            if row:  # an empty line is none
                yield reader.line_num, [(row[place].strip() or None) if place < len(row) else None for place in places]

    return header, rows


def _next(file, reader):
    """Returns the next row; `None` at the end."""
    try:
        return next(reader, None)
    except csv.Error as error:
        raise ValueError(f"{str(file)!r} is no CSV at line {reader.line_num}: {error}.") from None


def _lines(file, stream):
    """Yields lines of text, in the encoding that the first bytes mark, or UTF-8."""
    start = stream.read(4)
    stream.seek(0)
    encoding = next((name for mark, name in MARKS.items() if start.startswith(mark)), "utf-8")
    try:
        with io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
            yield from _short(file, text)
    except UnicodeDecodeError as error:
        stated = (
            f"the byte {error.object[error.start : error.start + 1]!r}{_line_of(file) if encoding == 'utf-8' else ''}"
        )
        raise ValueError(f"{str(file)!r} must be UTF-8: save it as that. Received: {stated}") from None


def _short(file, stream):
    """Yields the lines of a file; raises ValueError for one that no table of images has."""
    for number in itertools.count(1):
        line = stream.readline(MOST_LINE + 1)
        if len(line) > MOST_LINE:
            raise ValueError(f"Lines of {str(file)!r} must have at most {MOST_LINE} bytes. Received: line {number}")
        if not line:
            return
        yield line


def check_different(file, names):
    """Raises ValueError if two columns have one name."""
    twice = next((name for name, count in collections.Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"The columns of {str(file)!r} must have different names. Received: two of {twice!r}")


def _line_of(file):
    """Returns where a file is no UTF-8, as words."""
    with open(file, "rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f" in line {number}"
    return ""


def _json_lines(file, stream):
    def records():
        for number, line in enumerate(_short(file, stream), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line.removeprefix(codecs.BOM_UTF8), object_pairs_hook=_object)
            except (ValueError, RecursionError) as error:
                said = "its brackets are too deep" if isinstance(error, RecursionError) else error
                raise ValueError(
                    f"{str(file)!r} must have one JSON object a line. Line {number}: {said!s:.200}."
                ) from None
            if not isinstance(record, dict):
                raise ValueError(
                    f"{str(file)!r} must have one JSON object a line. Received: {record!r:.100} in line {number}"
                )
            yield number, record

    header = {}
    for _, record in records():
        header |= dict.fromkeys(record)
    stream.seek(0)
    if not header:
        raise ValueError(f"{str(file)!r} must have one JSON object a line. Received: an empty file")
    return list(header), lambda columns: ((line, [record.get(c) for c in columns]) for line, record in records())


def _object(pairs):
    """Returns an object of JSON; raises ValueError if a key is there twice."""
    found = {composed(key): value for key, value in pairs}
    if len(found) < len(pairs):
        twice = next(k for k, count in collections.Counter(composed(key) for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _parquet(file, stream):
    from keras_vit.data.readers import parquet

    found = parquet.opened(file, stream)
    raw = found.schema_arrow.names
    check_different(file, map(composed, raw))
    places = dict(zip(map(composed, raw), raw))
    return list(places), lambda columns: parquet.rows(file, stream, [places[name] for name in columns])
