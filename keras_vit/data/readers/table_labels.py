"""Several labels for each row of a table: names in one cell, or a column of 0 and 1 for each class."""

import array
import ast
import collections
import contextlib
import json

import numpy as np

from keras_vit.data.readers.class_names import LISTED, in_order, name_of
from keras_vit.utils import checks
from keras_vit.utils.names import composed

SEPARATOR, OTHERS = ";", ",|/ "  # between names in a cell of text; what else a cell may have meant as one
FLAGS = {
    **dict.fromkeys(("1", "1.0", "yes", "true"), 1),
    **dict.fromkeys(("0", "0.0", "no", "false"), 0),
    **dict.fromkeys(("-1", "-1.0", "nan", ""), -1),
}


def several_labels(columns, said):
    """Returns what reads several labels from the cells of a row, as `targets.KINDS` has it.

    Args:
        columns: Names of the columns.
        said: `Data.columns`. Its `"multilabels"` is the name of a column of names, which `;` separates; a dictionary
            `{"names": "tags", "separator": ","}`; or a list of columns of 0 and 1, one a class. Its `"classes"` is the
            names of all classes, in order, or missing.
    """
    given = said.get("multilabels")
    if isinstance(given, (list, tuple)):
        return Flags(columns)
    if len(columns) != 1:
        raise ValueError(f"Names of labels must be in one column. Received: {', '.join(map(repr, columns))}")
    separator = given.get("separator", SEPARATOR) if isinstance(given, dict) else None
    if separator is not None and not (isinstance(separator, str) and separator):
        raise ValueError(f"The separator of names must be a text. Received: separator={checks.shown(separator)}")
    return Names(columns, separator, said.get("classes"))


class Names:
    """Names in one cell: a text, or a list as JSON and Parquet have it. An empty cell is an image without labels."""

    def __init__(self, columns, separator=None, classes=None):
        self.columns = columns
        self.separator = separator
        self.classes = classes and tuple(classes)
        self.known = {composed(str(name)): name for name in classes or ()}
        self.codes = {}
        self.separated = False  # whether any cell had several names
        self.rows = array.array("i")
        self.counts = array.array("i")

    def parse(self, cells):
        (cell,), (column,) = cells, self.columns
        cell = [] if cell is None else cell
        parts = self._parts(cell, column) if isinstance(cell, str) else cell
        if not isinstance(parts, (list, tuple)):
            parts = [parts]  # one name that is a number
        names = [name_of(part, column, self.known) for part in parts if not isinstance(part, str) or part.strip()]
        for name in names:
            if self.known and name not in self.known:
                raise ValueError(f"{column!r} must have names of `classes` only. Received: {name!r:.60}")
        self.separated |= len(names) > 1
        return dict.fromkeys(self.known.get(name, name) for name in names)

    def _parts(self, cell, column):
        """Returns the names of a text: what a separator parts, or a list as Python and JSON write it."""
        parts = cell.split(self.separator or SEPARATOR)
        if not (cell.startswith("[") and cell.endswith("]")) or self.known.keys() >= {*map(str.strip, parts)}:
            return parts
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(cell)
        with contextlib.suppress(ValueError, SyntaxError):
            if LISTED.fullmatch(cell):
                return ast.literal_eval(cell)
        raise ValueError(
            f"{column!r} must have names, or a list of texts in quotes with commas between. Received: {cell!r:.60}"
        )

    def add(self, names, inside=True):
        codes = [self.codes.setdefault(name, len(self.codes)) for name in names]
        if inside:
            self.rows.extend(codes)
            self.counts.append(len(codes))

    def names(self):
        return self.classes or tuple(in_order(self.codes))

    def made(self):
        self._check_separator()
        places = {name: place for place, name in enumerate(self.names())}
        columns = np.array([places[name] for name in self.codes], "int64")[np.frombuffer(self.rows, "int32")]
        found = np.zeros((len(self.counts), len(places)), "int8")
        found[np.repeat(np.arange(len(self.counts)), np.frombuffer(self.counts, "int32")), columns] = 1
        return found

    def _check_separator(self):
        """Raises ValueError if names look like several: parts of one are in other rows too."""
        if self.separator or self.classes:
            return
        if self.codes and {*self.codes} <= {"0", "1"}:
            raise ValueError(
                f"{self.columns[0]!r} must have names. Columns of 0 and 1, one a class, are a list: "
                f"data.columns={{'multilabels': [{self.columns[0]!r}, ...]}}. Received: 0 and 1 only"
            )
        if found := composite(self.codes, OTHERS) or (None if self.separated else recurring(self.codes, OTHERS)):
            name, others, separator = found
            said = {"multilabels": {"names": self.columns[0], "separator": separator}}
            raise ValueError(
                f"{self.columns[0]!r} has {' and '.join(map(repr, others))}, so {name!r} looks like several "
                f"names. Say what separates them, such as data.columns={said}, or {SEPARATOR!r} if nothing does"
            )


def composite(names, separators, every=False):
    """Returns the first of some names whose parts are all names too, its parts and what separates them, or `None`.

    With `every`, all names with this separator must be such: of ImageNet-21k's `"grasshopper, hopper"` few others are.
    """
    for separator in separators:
        several = {name: [*map(str.strip, name.split(separator))] for name in names if separator in name}
        found = [name for name, parts in several.items() if all(part in names for part in parts)]
        if found and not (every and len(found) < len(several)):
            return found[0], several[found[0]], separator
    return None


def recurring(names, separators, alone=False):
    """Returns the first of some names that share a part, a list of another one, and what separates them, or `None`.

    Spaces are in plain names too, `"traffic light"` and `"traffic sign"`: there every name must share a part, and the
    parts be fewer than the names, or those of one be in another. If each image has one label, `alone`, every name with
    a separator must share a part, and one part be at two places: `"Pepper, hot"` and `"Pepper, mild"` are two names.
    """
    for separator in separators:
        parts = {name: [*filter(None, map(str.strip, name.split(separator)))] for name in names}
        several = {name: of for name, of in parts.items() if len(of) > 1}
        parts = several if alone else parts
        having = collections.defaultdict(list)
        for name, of in parts.items():
            for part in {*of}:
                having[part].append(name)
        sharing = {name for found in having.values() if len(found) > 1 for name in found}
        fits = not sharing.isdisjoint(several)
        if alone or separator == " ":
            fits = fits and sharing.issuperset(parts)
        if alone:
            fits = fits and len({place for of in several.values() for place in enumerate(of)}) > len(having)
        elif separator == " ":
            fits = fits and (len(having) < len(parts) or any(_inside(parts, having, of) for of in several.values()))
        if fits:
            name = next(name for name in several if name in sharing)
            return name, [next(other for part in several[name] for other in having[part] if other != name)], separator
    return None


def _inside(parts, having, of):
    """Returns whether another name has all of some parts and more."""
    return any({*of} < {*parts[name]} for name in having[min(of, key=lambda part: len(having[part]))])


class Flags:
    """A column for each class: 1, yes or true; 0, no or false; an empty cell or -1 where it is unknown."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = array.array("b")
        twice = [name for name, count in collections.Counter(columns).items() if count > 1]
        if twice:
            raise ValueError(f"Several labels must have a column each. Received: two of {twice[0]!r}")

    def parse(self, cells):
        flags = [FLAGS.get("" if cell is None else str(cell).strip().lower()) for cell in cells]
        if None in flags:
            at = flags.index(None)
            raise ValueError(
                f"{self.columns[at]!r} must be 0 or 1, yes or no, true or false, and empty or -1 where unknown. "
                f"Received: {cells[at]!r:.60}"
            )
        return flags

    def add(self, flags, inside=True):
        if inside:
            self.rows.extend(flags)

    def names(self):
        return tuple(self.columns)

    def made(self):
        return np.frombuffer(self.rows, "int8").reshape(-1, len(self.columns)).copy()
