"""Bilinear sampling of maps at places between their cells, in operators that every export has."""

import numpy as np
from keras import ops


def sampled(values, places, weights):
    """Returns weighted sums of values at places of a map, bilinear between the cells and zero outside.

    The four cells around each place are taken from one table of all cells, and summed by one product. The slope at the
    center of a cell is that towards the next cell.

    Args:
        values: Tensor, `(batch, rows, columns, heads, channels)`.
        places: Tensor, `(batch, queries, heads, points, 2)`: x and y in cells; the center of the first cell is 0.
        weights: Tensor, `(batch, queries, heads, points)`.

    Returns:
        Tensor, `(batch, queries, heads, channels)`, in the precision of the values.
    """
    rows, columns, heads, channels = values.shape[1:]
    table = ops.reshape(ops.transpose(values, (0, 3, 1, 2, 4)), (-1, channels))
    places, weights = ops.transpose(places, (0, 2, 1, 3, 4)), ops.transpose(weights, (0, 2, 1, 3))
    index, shares = corners(places, rows, columns)  # (batch, heads, queries, points, 4)
    index = index + ops.reshape(ops.arange(heads, dtype="int32") * (rows * columns), (-1, 1, 1, 1))
    batch = values.shape[0] or ops.shape(values)[0]
    index = index + ops.reshape(ops.arange(batch, dtype="int32") * (heads * rows * columns), (-1, 1, 1, 1, 1))
    shares = ops.cast(shares * weights[..., None], values.dtype)
    lead = (-1, heads, places.shape[2] or ops.shape(places)[2])
    found = ops.take(table, ops.reshape(index, (*lead, 4 * places.shape[3])), axis=0)
    summed = ops.matmul(ops.reshape(shares, (*lead, 1, 4 * places.shape[3])), found)
    return ops.transpose(summed[..., 0, :], (0, 2, 1, 3))


def corners(places, rows, columns):
    """Returns the four cells around places of a map, and what share of the place each has.

    Args:
        places: Tensor, `(..., 2)`: x and y in cells.
        rows, columns: The map's size.

    Returns:
        Two tensors, `(..., 4)`: each cell's index, int32, row by row; and its share, 0 outside the map. Of a place that
        is no number, shares that are none.
    """
    first = ops.floor(places)
    part = places - first
    x, y = first[..., :1] + np.array([0, 1, 0, 1], "float32"), first[..., 1:] + np.array([0, 0, 1, 1], "float32")
    (left, right), (top, bottom) = ([1 - part[..., i], part[..., i]] for i in (0, 1))
    shares = ops.stack([top * left, top * right, bottom * left, bottom * right], axis=-1)
    shares = ops.where((x < 0) | (x >= columns) | (y < 0) | (y >= rows), 0, shares)
    x, y = ops.where((x >= 0) & (x < columns), x, 0), ops.where((y >= 0) & (y < rows), y, 0)
    return ops.cast(y, "int32") * columns + ops.cast(x, "int32"), shares


def shares_of_cells(places, weights, rows, columns):
    """Returns the weight of each cell of a map, `(batch, heads, queries, rows, columns)`; see `sampled`."""
    places = ops.transpose(places, (0, 2, 1, 3, 4))  # (batch, heads, queries, points, 2)
    weights = ops.transpose(weights, (0, 2, 1, 3))[..., None]
    of_columns = _shares(places[..., :1], columns) * weights  # (batch, heads, queries, points, columns)
    of_rows = _shares(places[..., 1:], rows)
    return ops.matmul(ops.swapaxes(of_rows, -1, -2), of_columns)


def _shares(places, count):
    """Returns the bilinear share of each of `count` cells, `(..., count)`, at places counted in cells, `(..., 1)`."""
    return ops.relu(1 - ops.abs(places - np.arange(count, dtype="float32")))
