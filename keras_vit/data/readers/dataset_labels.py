"""One label, or several, for each example of a caller's dataset: indices, vectors or names."""

import numpy as np

from keras_vit.data.readers.class_names import NOTHING, in_order, name_of
from keras_vit.data.readers.table_labels import Flags, Names, several_labels
from keras_vit.utils import checks

LABELS = (
    "Each image must have an index, a one-hot vector or a name as its label, and batches of gray images a channel "
    "axis, (batch, height, width, 1)"
)
SEVERAL = "Several labels must be 0 or 1 for each class, or names; those that are indices need the type ClassLabel"


def reader(columns, given):
    """Returns what reads several labels as a table has them: `Names` of one column, `Flags` of several.

    Args:
        columns: Names of the columns, or `None` for a dataset without.
        given: What `Data.columns` says of them.
    """
    columns = columns or ("labels",)
    alone = len(columns) == 1 and not isinstance(given, dict)
    return several_labels(columns, {} if alone else {"multilabels": given})


def several(value, maker):
    """Returns several labels of one example: a tuple of names, or numbers.

    Args:
        value: A text, a list of names, numbers for each class, or a list of a cell for each column.
        maker: What `reader` returned.
    """
    value = np.asarray(value) if hasattr(value, "shape") else value
    texts = not isinstance(value, np.ndarray) or value.dtype.kind in "OSU"
    cells = _plain(value.tolist() if texts and isinstance(value, np.ndarray) else value)
    cells = [_plain(cell) for cell in cells] if texts and isinstance(cells, (list, tuple)) else cells
    if isinstance(maker, Flags):
        return maker.parse(cells)
    named = cells is None or isinstance(cells, str) or (isinstance(cells, list) and _texts(cells))
    return tuple(maker.parse([cells])) if named else list(value) if isinstance(value, tuple) else value


def one(value, answer=False):
    """Returns a label of one example: a name, or numbers; of an `answer` to a text any word is one.

    Raises:
        ValueError: For several names.
    """
    names = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind in "OSU" else value
    if isinstance(names, (list, tuple)) and names and _texts(names := list(map(_plain, names))):
        if len(names) > 1:
            raise ValueError(f"it must have one label. Received: {names!s:.60}")
        (value,) = names
    return name_of(value, "label", NOTHING if answer else ()) if isinstance(value, str) else value


def _plain(cell):
    """Returns a cell as a number or text of Python."""
    cell = np.asarray(cell).item() if hasattr(cell, "shape") and np.size(cell) == 1 else cell
    return cell.decode() if isinstance(cell, bytes) else cell


def _texts(values):
    return all(isinstance(value, str) for value in values)


def of_flags(maker):
    """Returns the names of the classes that columns of 0 and 1 are, an empty tuple without these."""
    return maker.names() if isinstance(maker, Flags) else ()


def names_of(values):
    """Returns the names of the classes of labels that are texts, or tuples of texts, sorted."""
    each = [name for value in values for name in (value if isinstance(value, tuple) else [value])]
    other = next((name for name in each if not isinstance(name, str)), None)
    if other is not None and any(isinstance(name, str) for name in each):
        raise ValueError(
            f"Labels must be all names or all numbers. Received: {checks.shown(other):.60} along with names"
        )
    return tuple(in_order(set(each))) if each and _texts(each) else ()


def of_indices(values, names):
    """Returns the names of class indices, a tuple for each example."""
    return [tuple(_name(i, names, number) for i in indices) for number, indices in enumerate(values)]


def _name(i, names, number):
    if not 0 <= i < len(names):
        raise ValueError(f"Labels must be class indices from 0 to {len(names) - 1}. Received: {i} in example {number}")
    return names[i]


def several_together(values, maker, names):
    """Returns several labels as an array `(n, classes)`.

    Args:
        values: Results of `several`, or of `of_indices`.
        maker: What `reader` returned.
        names: Names of the classes; an empty tuple for those in the values, which then must not look like several.
    """
    if not all(isinstance(value, tuple) for value in values):
        return together(values, SEVERAL)
    rows = Names(maker.columns, maker.separator, names)
    for number, value in enumerate(values):
        if names:
            _check_known(value, names, number)
        rows.add(value)
    return rows.made()


def _check_known(labels, names, number):
    unknown = next((name for name in labels if name not in names), None)
    if unknown is not None:
        raise ValueError(
            f"Labels must be names of the classes, {', '.join(names)}. Received: {unknown!r} in example {number}"
        )


def together(values, wanted):
    """Returns an array of the values of a target; raises ValueError with `wanted` unless they have one shape."""
    shapes = [_shape(value) for value in values]
    first = next((i for i, shape in enumerate(shapes) if shape is not None), 0)
    wrong = next((i for i, shape in enumerate(shapes) if shape is None or shape != shapes[first]), None)
    if wrong is not None:
        examples = ", and ".join(f"{_said(values[i])} in example {i}" for i in dict.fromkeys([wrong, first]))
        raise ValueError(f"{wanted}. Received: {examples}")
    return np.asarray(values)


def _shape(value):
    """Returns the shape of a value, `None` for a ragged one."""
    try:
        return np.shape(value)
    except ValueError:
        return None


def _said(value):
    return f"{checks.shown(list(value) if isinstance(value, tuple) else value):.100}"


def check_all(labels):
    """Raises ValueError for a label that is missing, with its place: `None`, or NaN, which pandas has for it."""
    lacking = next((number for number, label in enumerate(labels) if _is_missing(label)), None)
    if lacking is not None:
        raise ValueError(f"Each image must have a label. Received: {labels[lacking]} in example {lacking}")


def _is_missing(label):
    return (
        label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, float) and label != label)
    )


def indices(labels, names):
    """Returns an array of class indices, of names, indices or one-hot vectors."""
    check_all(labels)
    if _texts(labels):
        places = {name: i for i, name in enumerate(names)}
        for number, label in enumerate(labels):
            _check_known([label], places, number)
        return np.array([places[label] for label in labels])
    array = together(labels, LABELS)
    if array.ndim > 2:
        raise ValueError(f"{LABELS}. Received: labels of the shape {array.shape[1:]} in each example")
    array = _of_vectors(array, names) if array.ndim == 2 else array
    whole = array.dtype.kind == "b" or (array.dtype.kind == "f" and not (array % 1).any())
    return array.astype("int64") if whole else array


def _of_vectors(array, names):
    """Returns the indices of one-hot vectors."""
    one_hot = ((array == 0) | (array == 1)).all(1) & (array.sum(1) == 1) & (array.shape[1] == len(names))
    if not one_hot.all():
        row = int(one_hot.argmin())
        blended = "" if np.isin(array[row], (0, 1)).all() else ": augment.mixup of the recipe blends them"
        raise ValueError(
            f"A vector for each image must be one-hot, with {len(names)} classes{blended}. "
            f"Received: shape={array.shape}, of which example {row} has numbers from {array[row].min():g} to "
            f"{array[row].max():g} with the sum {array[row].sum():g}"
        )
    return array.argmax(1)
