"""Scores as the command evaluate prints them."""

from keras_vit.utils import tables
from keras_vit.utils.metrics import worded, written


def lines(measured, task, width):
    """Returns the lines of a table of scores, a row a file, and below it the scores of each class of the first file.

    Where the table is too wide, the scores of each file are below one another.

    Args:
        measured: What `keras_vit.evaluate` returned.
        task: The model's task, which has words for its scores.
        width: Places of a line.
    """
    file, scores = next(iter(measured.items()))
    overall = [name for name in scores if " " not in name]  # "iou NAME" is of one class
    each = [name for name in scores if " " in name]
    heads = [["file", *(worded(task.titled(name)) for name in overall)]]
    rows = [[file, *(written(name, values[name]) for name in overall)] for file, values in measured.items()]
    table = tables.aligned(heads + rows, right=range(1, len(overall) + 1))
    if max(map(tables.places, table)) <= width:
        return [*table, *_below(scores, each, task, width)]
    found = []
    for file, values in measured.items():
        found += [file, *_below(values, overall + each, task, width)]
        each = []  # an export's are much the same
    return found


def _below(values, names, task, width):
    """Returns a line for each of some scores."""
    if not names:
        return []
    numbers = [written(name, values[name]) for name in names]
    room = max(width - max(map(len, numbers)) - 4, 20)
    words = [tables.cut(worded(task.titled(name)), room) for name in names]
    return tables.aligned([["", *row] for row in zip(words, numbers)], right=[2])


def units(rows, task):
    """Returns a line for each column of validation scores in a table that has a unit: what it is, and in what.

    Args:
        rows: Dictionaries, with the columns `val_...` of `history.csv`.
        task: The task of the runs.
    """
    columns = dict.fromkeys(name for row in rows for name in row if name.startswith("val_"))
    titles = {column: task.titled(column.removeprefix("val_")) for column in columns}
    return [f"{column}: {worded(title)}" for column, title in titles.items() if title[1]]
