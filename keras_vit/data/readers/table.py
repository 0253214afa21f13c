"""A table next to images, one row for each image: class names, several labels, numbers and groups.

The convention of Hugging Face's image folders: `metadata.csv` (or `.jsonl`, `.parquet`) has a column `file_name`, the
path below the table's folder. Any other column may be a target.
"""

import array
import itertools
import math
import os
import pathlib
from typing import NamedTuple

import numpy as np

from keras_vit.data.readers import table_file
from keras_vit.data.readers.class_names import in_order, name_of
from keras_vit.data.readers.table_labels import SEPARATOR, composite, several_labels
from keras_vit.utils import checks
from keras_vit.utils.warned import left_out, named

# Names of columns where `Data.columns` does not say which it is; the first that the table has.
USUAL = {
    "images": ("file_name",),
    "labels": ("label", "labels", "class", "category"),
    "multilabels": ("labels", "tags", "classes", "categories", "label"),
}


LARGEST = float(np.finfo("float32").max)


class Table(NamedTuple):
    """What a table says of the images that it names."""

    paths: list[str]
    targets: dict[str, np.ndarray]
    class_names: tuple[str, ...]
    groups: np.ndarray | None  # a number for each image; images of one group belong together


def column_of(target, columns, header):
    """Returns the names of the columns of a target, a tuple; an empty one if the table has none."""
    given = columns.get(target)
    if isinstance(given, dict):
        if target != "multilabels":
            raise ValueError(f"data.columns[{target!r}] must be the name of a column. Received: {given!r}")
        checks.options("data.columns['multilabels']", given, ("names", "separator"))
        given = given.get("names")
    if given is not None:
        return (given,) if isinstance(given, str) else tuple(given)
    return next(((name,) for name in USUAL.get(target, ()) if name in header), ())


def read(file, base, columns, targets, *, skip=False):
    """Reads a table.

    Args:
        file: Path of the table.
        base: Folder of the images that are wanted: that of the table, or one below it.
        columns: Dictionary from targets (`"images"`, `"labels"`, `"multilabels"`, `"numbers"`, `"groups"`) to the name
            of a column, or to several; see `USUAL` for what it does not say, and `several_labels` for `"multilabels"`.
            `"classes"` may have the names of all classes of these.
        targets: Names of the targets to read.
        skip: Whether rows without a value, and rows of missing files, are left out with a warning instead of an error.

    Returns:
        A `Table`. `"labels"` is int32 `(n,)`, `"multilabels"` int8 `(n, classes)`, `"numbers"` float32 `(n, columns)`.
        Class names are those of the whole table, sorted.

    Raises:
        ValueError: For a table without these columns, and for rows that are twice there, whose file is missing, or
            whose cell is empty, no number or no known label. The error names the lines.
    """
    header = table_file.columns_of(file)
    wanted = {name: column_of(name, columns, header) for name in ("images", *targets, "groups")}
    for name, found in wanted.items():
        if not found and name != "groups":
            usual = " or ".join(map(repr, USUAL.get(name, ())))
            raise ValueError(
                f"{str(file)!r} has no column of {name}{usual and f', such as {usual}'}. Name it: "
                f"data.columns={{{name!r}: 'COLUMN'}}. It has: {', '.join(map(repr, header[: table_file.SHOWN]))}"
            )
    names = [name for found in wanted.values() for name in found]
    makers = {name: KINDS[name](found, columns) for name, found in wanted.items() if name != "images" and found}
    places = itertools.accumulate([1, *(len(maker.columns) for maker in makers.values())])
    parsers = [(maker.parse, slice(at, at + len(maker.columns))) for maker, at in zip(makers.values(), places)]
    folder, lines, bad = str(file.parent), {}, []
    below = "".join(f"{part}/" for part in base.relative_to(file.parent).parts)
    for line, cells in table_file.read(file, names):
        path, fault = cells[0], _fault(cells[0], lines, folder)
        try:
            parsed = [parse(cells[place]) for parse, place in parsers]
        except ValueError as error:
            fault = fault or str(error)
        if fault:
            bad.append(f"line {line}: {fault}")
        else:
            inside = path.startswith(below)
            if inside:
                lines[path] = line
            for maker, value in zip(makers.values(), parsed):
                maker.add(value, inside)
    if bad and not (skip and lines):
        raise ValueError(
            f"{len(bad)} rows of {str(file)!r} are wrong. Repair them, or leave them out with data.bad_images=skip:\n  "
            f"{named(bad)}"
        )
    if not lines:
        raise ValueError(f"{str(file)!r} must have a row for each image in {str(base)!r}. Received: none")
    if bad:
        left_out(f"{len(bad)} rows of {file.name}", bad)
    made = {name: maker.made() for name, maker in makers.items()}
    groups = made.pop("groups", None)
    class_names = next((makers[name].names() for name in ("labels", "multilabels") if name in makers), ())
    return Table([os.path.join(folder, path) for path in lines], made, class_names, groups)


def _fault(path, lines, folder):
    if path is None:
        return "it names no file"
    if path in lines:
        return f"{path!r} is in line {lines[path]} too"
    if os.path.isabs(path) or (".." in path and ".." in pathlib.PurePath(path).parts):
        return f"{path!r} is not below the table's folder"
    return None if os.path.isfile(os.path.join(folder, path)) else f"there is no file {path!r}"


class Labels:
    """One class for each row, by its name; numbers are names too."""

    def __init__(self, columns, said=None):
        self.columns = columns
        self.codes = {}
        self.rows = array.array("i")

    def parse(self, cells):
        if cells[0] is None:
            raise ValueError(f"{self.columns[0]!r} is empty")
        return cells[0] if cells[0] in self.codes else name_of(cells[0], self.columns[0])

    def add(self, name, inside=True):
        code = self.codes.setdefault(name, len(self.codes))  # a class of images elsewhere is one too
        if inside:
            self.rows.append(code)

    def names(self):
        return tuple(in_order(self.codes))

    def made(self):
        if found := composite(self.codes, SEPARATOR):
            raise ValueError(
                f"{self.columns[0]!r} must have one label for each image. Several, as in {found[0]!r}, are for "
                "Classify(multilabel=True). Received: both alone and together " + " and ".join(map(repr, found[1]))
            )
        places = {name: place for place, name in enumerate(self.names())}
        return np.array([places[name] for name in self.codes], "int32")[np.frombuffer(self.rows, "int32")]


class Numbers:
    """One or more finite numbers for each row."""

    def __init__(self, columns, said=None):
        self.columns = columns
        self.rows = array.array("f")

    def parse(self, cells):
        return list(map(self._number, self.columns, cells))

    def _number(self, column, cell):
        try:
            number = math.nan if isinstance(cell, bool) else float(cell)
        except (TypeError, ValueError):
            number = math.nan
        if not abs(number) <= LARGEST:
            raise ValueError(f"{column!r} is empty" if cell is None else f"{column!r} is no number: {cell!r:.60}")
        return number

    def add(self, numbers, inside=True):
        if inside:
            self.rows.extend(numbers)

    def made(self):
        return np.frombuffer(self.rows, "float32").reshape(-1, len(self.columns)).copy()


class Groups(Labels):
    """A group for each row, by its name."""

    def made(self):
        return np.frombuffer(self.rows, "int32").copy()


KINDS = {"labels": Labels, "multilabels": several_labels, "numbers": Numbers, "groups": Groups}
