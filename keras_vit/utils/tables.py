"""Tables of results: rows by name of column, printed in columns or written as CSV."""

import csv

from keras_vit.utils import files
from keras_vit.utils.metrics import written

WIDEST = 100  # characters of a printed cell


def text(rows):
    """Returns rows, dictionaries, as lines of aligned columns; what a row lacks is empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(name, row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def _cell(name, value):
    text = written(name, value) if isinstance(value, float) and name.startswith("val_") else str(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."


def write(path, rows):
    """Writes rows as CSV."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with files.replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
