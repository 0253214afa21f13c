"""Tables of results: rows by name of column, printed in columns or written as CSV."""

import csv
import itertools
import shutil
import unicodedata

from keras_vit.utils import files
from keras_vit.utils.metrics import written

NAMES = "surrogateescape"  # bytes of file names that are not UTF-8 are written as they are
WIDEST = 100  # places of a printed cell


def text(rows):
    """Returns rows, dictionaries, as lines of aligned columns; what a row lacks is empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(name, row.get(name, "")) for name in names] for row in rows)]
    return "\n".join(aligned(cells))


def _cell(name, value):
    text = written(name, value) if isinstance(value, float) and name.startswith("val_") else str(value)
    return cut(text, WIDEST)


def aligned(rows, right=(), between="  "):
    """Returns rows of texts, all equally many, as lines of columns.

    Args:
        rows: Lists of texts.
        right: Places of the columns that end at the same place; others begin there.
        between: What is between two columns.
    """
    widths = [max(map(places, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        filled = [" " * (width - places(cell)) for cell, width in zip(row, widths)]
        cells = [f + cell if i in right else cell + f for i, (cell, f) in enumerate(zip(row, filled))]
        lines.append(between.join(cells).rstrip())
    return lines


def places(text):
    """Returns how many places a text takes in a terminal: a Chinese or Japanese letter takes two, an accent none."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def cut(text, most):
    """Returns a text that takes at most `most` places, with dots where something is left out."""
    if places(text) <= most:
        return text
    fitting = itertools.takewhile(lambda width: width <= most - 3, itertools.accumulate(map(places, text)))
    return f"{text[: len(list(fitting))]}..."


def terminal():
    """Returns the places of a line of the terminal; 80 if there is none."""
    return shutil.get_terminal_size().columns


def write(path, rows, names=None):
    """Writes rows, dictionaries, as CSV; `names` are the columns, by default all that a row has."""
    names = names or list(dict.fromkeys(name for row in rows for name in row))
    with files.replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8", errors=NAMES) as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
