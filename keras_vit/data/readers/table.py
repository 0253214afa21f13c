"""A table next to images, one row for each image: class names, several labels, numbers, groups and splits.

The convention of Hugging Face's image folders: `metadata.csv` (or `.jsonl`, `.parquet`) has a column `file_name`, the
path below the table's folder. Any other column may be a target.
"""

import array
import collections
import functools
import hashlib
import itertools
import math
import os
import pathlib
import re
from typing import NamedTuple

import numpy as np

from keras_vit.data.readers import table_file
from keras_vit.data.readers.class_names import NOTHING, in_order, name_of, tell_nothing
from keras_vit.data.readers.table_labels import SEPARATOR, composite, recurring, several_labels
from keras_vit.data.readers.texts import TextColumns
from keras_vit.utils import checks
from keras_vit.utils.folders import files_in, is_image
from keras_vit.utils.names import Written, composed
from keras_vit.utils.progress import passing
from keras_vit.utils.warned import MOST, left_out, named, warn

# Names of columns where `Data.columns` does not say which it is; the first that the table has.
USUAL = {
    "images": ("file_name",),
    "labels": ("label", "labels", "class", "category"),
    "multilabels": ("labels", "tags", "classes", "categories", "label"),
    "texts": ("text", "texts", "caption", "captions"),
}

SEPARATORS = f"{SEPARATOR},|"  # between labels where one is wanted
UNUSUAL = re.compile(r"^/|^\w:|//|\\|(^|/)\.")  # what a plain path below a folder does not have
LARGEST = float(np.finfo("float32").max)


class Table(NamedTuple):
    """What a table says of the images that are wanted."""

    paths: list[str]
    targets: dict[str, np.ndarray]
    class_names: tuple[str, ...]
    groups: np.ndarray | None  # a number for each image; images of one group belong together
    below: int  # images in the folder that the table names, those of other splits too


def column_of(target, columns, header):
    """Returns the names of the columns of a target, a tuple; an empty one if the table has none."""
    column = columns.get(target)
    if isinstance(column, dict):
        if target not in ("multilabels", "texts"):
            raise ValueError(f"data.columns[{target!r}] must be the name of a column. Received: {checks.shown(column)}")
        checks.options(f"data.columns[{target!r}]", column, ("names", "separator"))
        column = column.get("names")
    if column is not None:
        return tuple(composed(str(name)) for name in ([column] if isinstance(column, str) else column))
    return next(((name,) for name in USUAL.get(target, ()) if name in header), ())


def read(file, base, columns, targets, split=None, *, skip=False):
    """Reads a table.

    Args:
        file: Path of the table.
        base: Folder of the images that are wanted: that of the table, or one below it.
        columns: Dictionary from `"images"` and the names of `KINDS` to the name of a column, or to several; see `USUAL`
            for what it does not say, `several_labels` for `"multilabels"` and `TextColumns` for `"texts"`. `"classes"`
            may have the names of all classes of several labels.
        targets: Names of the targets to read.
        split: What the column of `"splits"` says of the images that are wanted; `None` for all.
        skip: Whether rows without a value, and rows of missing files, are left out with a warning instead of an error.

    Returns:
        A `Table`. `"labels"` is int32 `(n,)`, `"multilabels"` int8 `(n, classes)`, `"numbers"` float32 `(n, columns)`,
        `"texts"` `(n,)`, a tuple of texts each. With texts an image may be in several rows, which are then a group.
        Class names are those of the whole table, sorted.

    Raises:
        ValueError: For a table without these columns, and for rows that are twice there, whose file is missing, or
            whose cell is empty, no number or no known label. The error names the lines.
    """
    header = table_file.columns_of(file)
    wanted = {name: column_of(name, columns, header) for name in ("images", *targets, *OPTIONAL)}
    for name, found in wanted.items():
        if not found and name not in OPTIONAL:
            usual = " or ".join(map(repr, USUAL.get(name, ())))
            raise ValueError(
                f"{str(file)!r} has no column of {name}{usual and f', such as {usual}'}. Name it: "
                f"data.columns={{{name!r}: 'COLUMN'}}. It has: {', '.join(map(repr, header[: table_file.SHOWN]))}"
            )
    names = [name for found in wanted.values() for name in found]
    makers = {name: KINDS[name](found, columns) for name, found in wanted.items() if name != "images" and found}
    places = itertools.accumulate([1, *(len(maker.columns) for maker in makers.values())])
    parsers = {
        name: (maker.parse, slice(at, at + len(maker.columns))) for (name, maker), at in zip(makers.items(), places)
    }
    files, lines, kept, splits, divided = Files(file.parent), {}, [], {}, set()
    bad, wrong, named_below = [], 0, 0
    below = "".join(f"{part}/" for part in base.relative_to(file.parent).parts)
    for number, cells in passing(table_file.read(file, names), "rows of the table: {n:,}", 2.0, every=10_000):
        try:
            path = files.path_of(cells[0])
            if path in lines and "texts" not in makers:
                raise ValueError(f"{path!r} is in line {lines[path]} too")
            row = {name: parse(cells[place]) for name, (parse, place) in parsers.items()}
        except ValueError as error:
            if wrong < MOST:
                bad.append(f"line {number}: {error}")
            wrong += 1
            continue
        lines[path] = number
        if "splits" in row and splits.setdefault(path, row["splits"]) != row["splits"]:
            divided.add(path)
        inside = path.startswith(below)
        named_below += inside
        inside = inside and (split is None or composed(split) == row.get("splits"))
        if inside:
            kept.append(path)
        for name, value in row.items():
            makers[name].add(value, inside)
    if bad and not (skip and lines):
        raise ValueError(
            f"{wrong} rows of {str(file)!r} are wrong. Repair them, or leave them out with data.bad_images=skip:\n  "
            f"{named(bad, wrong)}"
        )
    if not kept and split is not None and lines:
        known = ", ".join(map(repr, list(makers["splits"].codes)[: table_file.SHOWN]))
        raise ValueError(
            f"{str(file)!r} has no row of the split {split!r}. Its column {wanted['splits'][0]!r} has: {known}"
        )
    if not kept:
        raise ValueError(f"{str(file)!r} must have a row for each image in {str(base)!r}. Received: none")
    if divided:
        warn(f"{len(divided)} images of {file.name} are in several splits, such as {min(divided)!r}.")
    if bad:
        left_out(f"{wrong} rows of {file.name}", bad, wrong)
    made = {name: maker.made() for name, maker in makers.items() if name not in OPTIONAL}
    groups = makers["groups"].made() if "groups" in makers else None
    if groups is None and len(set(kept)) < len(kept):
        groups = np.array([group_of(path) for path in kept], "int64")
    class_names = next((makers[name].names() for name in ("labels", "multilabels") if name in makers), ())
    return Table([files.start + path for path in kept], made, class_names, groups, named_below)


class Files:
    """The files that a table names, below its folder: by their paths, or by what is as clear.

    A name without folders or without its ending stands for the one image that has it.
    """

    def __init__(self, folder):
        self.folder = folder
        self.start = os.path.join(folder, "")
        self.written = Written()

    def path_of(self, cell):
        """Returns the path of a cell below the folder, with `/`; raises ValueError if there is no such file."""
        if cell is None:
            raise ValueError("it names no file")
        path = str(cell)
        if UNUSUAL.search(path):
            path = os.path.normpath(path.replace("\\", "/"))
            path = os.path.relpath(path, self.folder) if os.path.isabs(path) else path
            path = path.replace(os.sep, "/")
            if path.startswith("../"):
                raise ValueError(f"{cell!r} is not below the table's folder")
        if os.path.isfile(there := self.written.path(self.start + path)):
            return there[len(self.start) :]
        found = self.shorter.get(composed(path), [])
        if len(found) > 1:
            raise ValueError(f"{cell!r} may be any of {len(found)} files, such as {found[0]!r} and {found[1]!r}")
        if not found:
            raise ValueError(f"there is no file {cell!r}")
        return found[0]

    @functools.cached_property
    def shorter(self):
        """The paths of all images, by their names without folders, without endings, and without both."""
        known = collections.defaultdict(list)
        for file in files_in(self.folder):
            if is_image(file):
                path = pathlib.Path(file).relative_to(self.folder)
                for name in {path.name, path.stem, path.with_suffix("").as_posix()}:
                    known[composed(name)].append(path.as_posix())
        return known


class Labels:
    """One class for each row, by its name; numbers are names too. An answer to a text is one, whatever is in it."""

    def __init__(self, columns, said=None):
        self.columns = columns
        self.whole = "texts" in (said or {})
        self.codes = {}
        self.rows = array.array("i")

    def parse(self, cells):
        (cell,) = cells
        if cell is None:
            raise ValueError(f"{self.columns[0]!r} is empty")
        known = NOTHING if self.whole else ()
        return cell if isinstance(cell, str) and cell in self.codes else name_of(cell, self.columns[0], known)

    def add(self, name, inside=True):
        code = self.codes.setdefault(name, len(self.codes))  # a class of images elsewhere is one too
        if inside:
            self.rows.append(code)

    def names(self):
        return tuple(in_order(self.codes))

    def made(self):
        if found := None if self.whole else self._several():
            raise ValueError(
                f"{self.columns[0]!r} must have one label for each image. Several, as in {found[0]!r}, are for "
                f"Classify(multilabel=True). Received: {found[0]!r} along with {' and '.join(map(repr, found[1]))}"
            )
        tell_nothing([name for name in self.codes if name in NOTHING], self.columns)
        places = {name: place for place, name in enumerate(self.names())}
        return np.array([places[name] for name in self.codes], "int32")[np.frombuffer(self.rows, "int32")]

    def _several(self):
        """Returns a name that looks like several, its parts and what separates them, or `None`."""
        found = composite(self.codes, SEPARATOR) or composite(self.codes, SEPARATORS, every=True)
        return found or recurring(self.codes, SEPARATORS, alone=True)


class Numbers:
    """One or more finite numbers for each row."""

    def __init__(self, columns, said=None):
        self.columns = columns
        self.rows = array.array("f")

    def parse(self, cells):
        return list(map(self._number, self.columns, cells))

    def _number(self, column, cell):
        try:
            number = math.nan if isinstance(cell, bool) or "_" in str(cell) else float(cell)
        except (TypeError, ValueError, OverflowError):
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
    """A group for each row, by its name, which has the same number in every table."""

    def made(self):
        return np.array([group_of(name) for name in self.codes], "int64")[np.frombuffer(self.rows, "int32")]


KINDS = {
    "labels": Labels,
    "multilabels": several_labels,
    "numbers": Numbers,
    "texts": TextColumns,
    "groups": Groups,
    "splits": Groups,
}
OPTIONAL = ("groups", "splits")  # no targets


def group_of(name):
    """Returns the number of a group, 64 bits of a hash of its name."""
    name = name if isinstance(name, bytes) else str(name).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little", signed=True)
