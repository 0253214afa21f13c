"""`history.csv`: one row per epoch."""

import csv
import pathlib

from keras_vit import files
from keras_vit.training.rundir import HISTORY


def read(folder):
    """Reads `history.csv`: a dictionary from names to lists, one value per epoch.

    Raises:
        ValueError: If it has no row, or is damaged.
    """
    path = pathlib.Path(folder) / HISTORY
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        return {name: [float(row[name]) for row in rows] for name in rows[0]}
    except IndexError:
        raise ValueError(f"{str(path)!r} has no epoch yet.") from None
    except (TypeError, ValueError, csv.Error) as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}. `fit` rewrites it from the training state.") from None


def rewrite(folder, rows):
    """Writes `history.csv` from rows: after a resume it has each epoch once, and none that was lost."""
    with files.replacing(pathlib.Path(folder) / HISTORY) as path:
        path.touch()
        for row in rows:
            _append(path, row)


def append(folder, row):
    """Appends a row to `history.csv`."""
    _append(pathlib.Path(folder) / HISTORY, row)


def _append(path, row):
    new = not path.exists() or not path.stat().st_size
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)
