"""A table next to images, one row for each image: class names, several labels, numbers, groups and splits.

The convention of Hugging Face's image folders: `metadata.csv` (or `.jsonl`, `.parquet`) has a column `file_name`, the
path below the table's folder. Any other column may be a target.
"""

import collections
import functools
import itertools
import os
import pathlib
import re
from typing import NamedTuple

import numpy as np

from keras_vit.data.readers import table_file
from keras_vit.data.readers.table_cells import FileNames, Groups, group_of
from keras_vit.data.targets import KINDS, usual
from keras_vit.utils import checks
from keras_vit.utils.folders import files_in, is_image
from keras_vit.utils.names import Written, composed
from keras_vit.utils.progress import passing
from keras_vit.utils.warned import MOST, left_out, named, warn

OPTIONAL = {"groups": Groups, "splits": Groups}  # no targets
CELLS = {name: kind.cells for name, kind in KINDS.items() if kind.cells} | OPTIONAL
FILE_NAMES = ("file_name",)  # of the column of paths, where `Data.columns` does not say it
UNUSUAL = re.compile(r"^/|^\w:|//|\\|(^|/)\.")  # what a plain path below a folder does not have


class Table(NamedTuple):
    """What a table says of the images that are wanted."""

    paths: list[str]
    targets: dict[str, np.ndarray]
    class_names: tuple[str, ...]
    groups: np.ndarray | None  # a number for each image; images of one group belong together
    below: int  # images in the folder that the table names, those of other splits and of masks too


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
    return next(((name,) for name in _usual(target) if name in header), ())


def _usual(name):
    return FILE_NAMES if name == "images" else usual(name) if name in KINDS else ()


def read(file, base, columns, targets, split=None, *, skip=False):
    """Reads a table.

    Args:
        file: Path of the table.
        base: Folder of the images that are wanted: that of the table, or one below it.
        columns: Dictionary from `"images"` and the names of `CELLS` to the name of a column, or to several; see
            `targets.KINDS` for what it does not say, `several_labels` for `"multilabels"` and `TextColumns` for
            `"texts"`. `"classes"` may have the names of all classes of several labels.
        targets: Names of the targets to read.
        split: What the column of `"splits"` says of the images that are wanted; `None` for all.
        skip: Whether rows without a value, and rows of missing files, are left out with a warning instead of an error.

    Returns:
        A `Table`. `"labels"` is int32 `(n,)`, `"multilabels"` int8 `(n, classes)`, `"numbers"` float32 `(n, columns)`,
        `"texts"` `(n,)`, a tuple of texts each, `"segmentation_masks"` `(n,)`, paths. With texts an image may be in
        several rows, which are then a group.
        Class names are those of the whole table, sorted.

    Raises:
        ValueError: For a table without these columns, and for rows that are twice there, whose file is missing, or
            whose cell is empty, no number or no known label. The error names the lines.
    """
    header = table_file.columns_of(file)
    wanted = {name: column_of(name, columns, header) for name in ("images", *targets, *OPTIONAL)}
    for name, found in wanted.items():
        if not found and name not in OPTIONAL:
            usual = " or ".join(map(repr, _usual(name)))
            raise ValueError(
                f"{str(file)!r} has no column of {name}{usual and f', such as {usual}'}. Name it: "
                f"data.columns={{{name!r}: 'COLUMN'}}. It has: {', '.join(map(repr, header[: table_file.SHOWN]))}"
            )
    if len(wanted["images"]) != 1:
        raise ValueError(
            "Images must be in one column: write the bands of a sample into one file. Received: "
            f"{', '.join(map(repr, wanted['images']))}"
        )
    names = [name for found in wanted.values() for name in found]
    makers = {name: CELLS[name](found, columns) for name, found in wanted.items() if name != "images" and found}
    places = itertools.accumulate([1, *(len(maker.columns) for maker in makers.values())])
    parsers = {
        name: (maker.parse, slice(at, at + len(maker.columns))) for (name, maker), at in zip(makers.items(), places)
    }
    files, lines, kept, splits, divided = Files(file.parent), {}, [], {}, set()
    others = {name: set() for name, maker in makers.items() if isinstance(maker, FileNames)}  # files of targets
    for name in others:
        makers[name].files = files
    bad, wrong = [], 0
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
        inside = inside and (split is None or composed(split) == row.get("splits"))
        if inside:
            kept.append(path)
        for name, value in row.items():
            makers[name].add(value, inside)
        for name, found in others.items():
            found.add(row[name])
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
    every = itertools.chain(lines, *(found - lines.keys() for found in others.values()))
    named_below = sum(path.startswith(below) for path in every)
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
