"""Polygons as masks."""

import numpy as np


def filled(polygons, size):
    """Returns a mask of polygons, uint8 `(height, width)`; 0 is outside. Smaller ones are on top, then later ones.

    Args:
        polygons: Pairs of a value, 1 to 255, and points, x and y in pixels, `(points, 2)`.
        size: `(height, width)`.
    """
    mask = np.zeros(size, "uint8")
    for value, points in sorted(polygons, key=lambda polygon: -_area(polygon[1])):
        _fill(mask, points, value)
    return mask


def _area(points):
    x, y = points.T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def _fill(mask, points, value):
    """Sets the pixels whose centers are inside, by the even-odd rule: a bridge to a hole or to another part is none."""
    (left, top), (right, bottom) = np.floor(points.min(0)).astype(int), np.ceil(points.max(0)).astype(int)
    left, top = max(left, 0), max(top, 0)
    part = mask[top : max(bottom, 0), left : max(right, 0)]
    (x, y), (height, width) = (points - (left, top)).T, part.shape
    rows, x_next, y_next = np.arange(height) + 0.5, np.roll(x, -1), np.roll(y, -1)
    row, edge = np.nonzero((y <= rows[:, None]) != (y_next <= rows[:, None]))  # each row's crossings with edges
    places = x[edge] + (rows[row] - y[edge]) * (x_next - x)[edge] / (y_next - y)[edge]
    columns = np.clip(np.ceil(places - 0.5), 0, width).astype(int)  # the first center to the right
    crossings = np.bincount(row * (width + 1) + columns, minlength=height * (width + 1)).reshape(height, width + 1)
    part[np.cumsum(crossings, axis=1)[:, :-1] % 2 == 1] = value
