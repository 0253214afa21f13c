"""`history.csv`: one row per epoch."""

import csv
import math
import pathlib

from keras_vit.training.rundir import HISTORY
from keras_vit.utils import files


def read(folder):
    """Reads `history.csv`: a dictionary from names to lists, one value per epoch.

    Raises:
        ValueError: If it has no row, or is damaged.
    """
    path = pathlib.Path(folder) / HISTORY
    try:
        with open(files.regular(path), newline="") as file:
            rows = list(csv.DictReader(file))
        return {name: [float(row[name]) for row in rows] for name in rows[0]}
    except IndexError:
        raise ValueError(f"{str(path)!r} has no epoch yet.") from None
    except (TypeError, ValueError, csv.Error) as error:
        raise ValueError(
            f"{str(path)!r} is damaged: {str(error).rstrip('.')}. `fit` rewrites it from the training state."
        ) from None


def since_best(rows, column, better):
    """Returns the number of epochs after the first of the best ones; 0 as long as the column has no number.

    Args:
        rows: One dictionary per epoch, with `"val_loss"` too.
        column: Name of what is compared.
        better: `"max"` or `"min"`.
    """
    values = [float(row[column]) if math.isfinite(row["val_loss"] + row[column]) else None for row in rows]
    scores = [value for value in values if value is not None]
    return len(rows) - 1 - values.index((max if better == "max" else min)(scores)) if scores else 0


def rewrite(folder, rows):
    """Writes `history.csv` from rows, one per epoch done; what a row lacks is NaN."""
    names = dict.fromkeys(name for row in rows for name in row)
    with files.replacing(pathlib.Path(folder) / HISTORY) as path, open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(names), restval=math.nan)
        if rows:
            writer.writeheader()
        writer.writerows(rows)
