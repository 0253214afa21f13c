"""What reads the cells of a table, one class for each kind of column: a column of `data/targets.py`.

Each takes the names of its columns and `Data.columns`. `parse` reads the cells of a row, `add` keeps what it returned,
and `made` returns the array of the rows that were added as `inside`.
"""

import array
import hashlib
import math

import numpy as np

from keras_vit.data.readers.class_names import NOTHING, in_order, name_of, tell_nothing
from keras_vit.data.readers.table_labels import SEPARATOR, composite, recurring

SEPARATORS = f"{SEPARATOR},|"  # between labels where one is wanted
LARGEST = float(np.finfo("float32").max)


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


class FileNames:
    """One file for each row, such as its mask, by its path below the folder of the table."""

    files = None  # the `table.Files` of the table

    def __init__(self, columns, said=None):
        if len(columns) != 1:
            raise ValueError(f"Files must be in one column. Received: {', '.join(map(repr, columns))}")
        self.columns = columns
        self.rows = []

    def parse(self, cells):
        """Returns the path below the folder; raises ValueError if there is no such file."""
        if cells[0] is None:
            raise ValueError(f"{self.columns[0]!r} is empty")
        return self.files.path_of(cells[0])

    def add(self, path, inside=True):
        if inside:
            self.rows.append(self.files.start + path)

    def made(self):
        return np.array(self.rows, object)


class Groups(Labels):
    """A group for each row, by its name, which has the same number in every table."""

    def made(self):
        return np.array([group_of(name) for name in self.codes], "int64")[np.frombuffer(self.rows, "int32")]


def group_of(name):
    """Returns the number of a group, 64 bits of a hash of its name."""
    name = name if isinstance(name, bytes) else str(name).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little", signed=True)
