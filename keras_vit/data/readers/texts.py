"""The texts of images, one or several each, as strings: a task turns them into ids of words."""

import ast
import contextlib
import dataclasses
import json
from collections.abc import Mapping

import numpy as np

from keras_vit.data.readers.class_names import LISTED, NOTHING, tell_nothing
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

EMPTY = "[]"  # a list without a text, as programs print it


class TextColumns:
    """One or more texts for each row of a table or a dataset, of several columns or of a cell that is a list.

    With `{"names": ["name", "tags"], "separator": ";"}` as the columns of `"texts"`, cells are lists of texts.
    """

    def __init__(self, columns, said=None):
        self.columns = columns
        given = (said or {}).get("texts")
        self.separator = given.get("separator") if isinstance(given, dict) else None
        self.rows = []
        self.printed = []  # whether each text of any row, also of another split, is a list that a program printed

    def parse(self, cells):
        """Returns the texts of a row, as they are; what is a list for each row is made of them at the end."""
        texts = flat(cells)
        texts = flat(part for text in texts for part in text.split(self.separator)) if self.separator else texts
        if not any(text != EMPTY for text in texts):
            raise ValueError(
                f"{' and '.join(map(repr, self.columns))} {'are' if len(self.columns) > 1 else 'is'} empty"
            )
        return texts

    def add(self, texts, inside=True):
        self.printed.append(any(map(LISTED.fullmatch, texts)))
        if inside:
            self.rows.append(texts)

    def made(self):
        return together(told(self.rows, self.printed, self.columns))


def flat(values):
    """Returns the texts of one image as a tuple, without spaces around them and without empty ones.

    Raises:
        ValueError: For what is no text.
    """
    found = []
    for value in values:
        value = value.strip() if isinstance(value, str) else value
        if isinstance(value, (list, tuple, np.ndarray)):
            found += flat(value)
        elif isinstance(value, bytes):
            found += flat([value.decode()])
        elif value is not None and not isinstance(value, str):
            raise ValueError(f"a text must be a string. Received: {checks.shown(value):.60}")
        elif value:
            found.append(value)
    return tuple(found)


def told(rows, printed, columns=()):
    """Returns the texts of all rows; if every row has a list that a program printed, `["a", "b"]`, the list's texts.

    Where only some rows have one, it is a text like any other, of which a warning says so; as it does of words that
    programs write for a missing value.

    Args:
        rows: List of tuples of texts.
        printed: Whether each row, also of another split, has such a list.
        columns: Names of the columns of a table.

    Raises:
        ValueError: If a list is empty.
    """
    where = f" of {' and '.join(map(repr, columns))}" if columns else ""
    if printed and all(printed):
        rows = [tuple(part for text in texts for part in _parts(text)) for texts in rows]
        if not all(rows):
            raise ValueError(f"Each image must have a text. Received: an empty list{where}")
    elif any(printed):
        warn(
            f"{sum(printed):,} of {len(printed):,} texts{where} look like lists, and are read as they are: only where "
            "every row has one, lists are meant."
        )
    tell_nothing([text for texts in rows for text in texts if text in NOTHING], columns)
    return rows


def _parts(text):
    return flat(_parsed(text)) if LISTED.fullmatch(text) else (text,)


def _parsed(text):
    """Returns a list that is written as a text, by JSON or by Python."""
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return ast.literal_eval(text)


def by_image(source):
    """Returns a source in which each file is there once, with the texts of all its rows."""
    texts = source.targets.get("texts")
    if not source.files or texts is None or texts.dtype != object:
        return source
    places = {}
    for place, path in enumerate(source.images):
        places.setdefault(str(path), []).append(place)
    if len(places) == len(source):
        return source
    once = source.take(np.array([of_path[0] for of_path in places.values()]))
    rows = [tuple(dict.fromkeys(text for i in of_path for text in texts[i])) for of_path in places.values()]
    return dataclasses.replace(once, targets={**once.targets, "texts": together(rows)})


def together(rows):
    """Returns tuples of texts as an array of objects, `(rows,)`."""
    made = np.empty(len(rows), object)
    made[:] = rows
    return made


def of_array(values, images, _=(), what="image"):
    """Returns the caller's texts: strings, or several for each image, as in `together`; ids of words, int32.

    Args:
        values: The texts.
        images: What they belong to, or as many of anything.
        what: The word for it.

    Raises:
        ValueError: For another number of them than of images, an image without text, or what is neither.
    """
    ids = np.asarray(values) if getattr(values, "dtype", None) is not None else None
    if ids is not None and ids.dtype.kind in "iu":
        if ids.ndim != 2 or len(ids) != len(images) or not ids.size or ids.min() < 0:
            raise ValueError(
                f"Ids of words must be integers from 0, of the shape ({len(images)}, length). "
                f"Received: shape={ids.shape}" + (f", from {ids.min()}" if ids.size else "")
            )
        return ids.astype("int32")
    values = ids if ids is not None and ids.dtype.kind in "OSU" else values
    ordered = hasattr(values, "__len__") and hasattr(values, "__getitem__") and not isinstance(values, Mapping)
    if isinstance(values, (str, bytes)) or not ordered or len(values) != len(images):
        said = (
            f"{len(values)} of them" if isinstance(values, (list, tuple, np.ndarray)) else f"{checks.shown(values):.60}"
        )
        raise ValueError(f"Texts must be a list of strings, or of lists, for {len(images)} {what}s. Received: {said}")
    rows = []
    for number, value in enumerate(values):
        try:
            rows.append(flat([value]))
        except ValueError as error:
            raise ValueError(f"Texts of {what} {number}: {error}") from None
        if not rows[-1]:
            raise ValueError(f"Each {what} must have a text. Received: {checks.shown(value):.60} of {what} {number}")
    return together(told(rows, [any(map(LISTED.fullmatch, texts)) for texts in rows]))
