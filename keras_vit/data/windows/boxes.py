"""Boxes of a large picture in one of its crops."""

import numpy as np

from keras_vit.data.augment.boxes import EMPTY
from keras_vit.data.readers.box_arrays import have_area
from keras_vit.models.outputs import ignored

ROUNDING = 1e-4  # of a box's area, by which less of it may seem to be inside
SLIVER = 0.01  # pixels: what is thinner is outside
PARTS = 8  # steps of a crop's side in which `most_in_crop` moves it
CELLS = 2**22  # places of crops that it counts at once, at most


def cut(boxes, shape, start, size, visible):
    """Returns the boxes of a crop.

    Args:
        boxes: Those of the picture, float32 `(boxes, 5)`, as in `data.augment.boxes`.
        shape: `(height, width)` of the picture in pixels.
        start: `(top, left)` of the crop.
        size: `(height, width)` of the crop.
        visible: Least share of an object's area in the crop. Of an object with less, what is in the crop becomes a
            region to ignore.

    Returns:
        float32 `(boxes, 5)` in shares of the crop, without empty rows.
    """
    boxes = boxes[boxes[:, 4] != EMPTY[4]]
    whole = boxes[:, :4].astype("float64") * (*shape, *shape)
    edges = whole - (*start, *start)
    inside = np.clip(edges, 0, (*size, *size))
    shares = (inside / (*size, *size)).astype("float32")
    little = _area(inside) < visible * _area(whole) * (1 - ROUNDING)
    classes = np.where(little & (boxes[:, 4] >= 0), ignored(boxes[:, 4]), boxes[:, 4])
    kept = have_area(shares) & ((inside[:, 2:] - inside[:, :2]) > SLIVER).all(axis=1)
    return np.concatenate([shares[kept], classes[kept, None]], axis=1).astype("float32")


def padded(rows, count):
    """Returns the boxes of several crops as one array, float32 `(crops, count, 5)`, with empty rows last."""
    array = np.tile(np.array(EMPTY, "float32"), (len(rows), max(count, 1), 1))
    for place, row in zip(array, rows):
        place[: len(row)] = row
    return array


def most_in_crop(boxes, shape, size):
    """Returns a number of boxes that no crop of a picture exceeds: at most those in one that is an eighth larger.

    Args:
        boxes, shape, size: As in `cut`.
    """
    boxes = boxes[boxes[:, 4] != EMPTY[4]]
    step = np.maximum(np.array(size) // PARTS, 1)
    counts = np.array(shape) // step + 2
    if len(boxes) < 2 or counts.prod() > CELLS:
        return len(boxes)
    edges = boxes[:, :4].astype("float64") * (*shape, *shape)
    first = np.clip((edges[:, :2] - size) // step, 0, counts - 1).astype(int)  # steps of starts that see a box
    last = np.clip(edges[:, 2:] // step, 0, counts - 1).astype(int) + 1
    changes = np.zeros(counts + 1, "int32")
    for rows, columns, sign in ((first, first, 1), (first, last, -1), (last, first, -1), (last, last, 1)):
        np.add.at(changes, (rows[:, 0], columns[:, 1]), sign)
    return int(changes.cumsum(0).cumsum(1).max())


def _area(edges):
    return (edges[:, 2] - edges[:, 0]) * (edges[:, 3] - edges[:, 1])
