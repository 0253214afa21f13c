"""Whether one picture is a part of another, by their thumbnails: crops that no hash finds, also mirrored ones."""

import functools

import numpy as np

from keras_vit.utils.resampling import area_matrix

SIDE = 16  # pixels of the gray thumbnails' side
CELLS = 8  # parts of a side that are compared
SCALES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)  # side of the part by the side of the whole
STEPS = 5  # places of a part along each side
EQUAL = 0.02  # likeness by which a part must be better than the whole
BLOCK = 256  # pairs that are compared at once


def likeness(first, second):
    """Returns how alike pairs of pictures are, where one may be a part of the other, or mirrored.

    Args:
        first, second: Gray thumbnails, `(pairs, SIDE, SIDE)`.

    Returns:
        float32 `(pairs,)`, at most 1; and booleans `(pairs,)`: whether one is a part, and whether it is mirrored.
    """
    scores, parts, mirrored = np.empty(len(first), "float32"), *np.empty((2, len(first)), bool)
    for start in range(0, len(first), BLOCK):
        rows = slice(start, start + BLOCK)
        one, other = first[rows].astype("float32"), second[rows].astype("float32")
        turned = other[:, :, ::-1]
        ways = [(one, other), (other, one), (one, turned), (turned, one)]
        each = np.stack([_inside(*way) for way in ways])  # (ways, pairs, windows)
        best = each.max(2)
        scores[rows], mirrored[rows] = best.max(0), best[2:].max(0) > best[:2].max(0)
        parts[rows] = each[:, :, 0].max(0) < scores[rows] - EQUAL
    return scores, parts, mirrored


def _inside(whole, part):
    """Returns how alike each picture is to each part of another, `(pairs, windows)`, to the whole first."""
    count, cells = len(whole), CELLS * CELLS
    parts = (whole.reshape(count, -1) @ windows()).reshape(count, -1, cells)
    part = part.reshape(count, CELLS, SIDE // CELLS, CELLS, SIDE // CELLS).mean((2, 4)).reshape(count, 1, cells)
    contrast = cells * (parts.var(-1) + part.var(-1))
    different = (parts**2).sum(-1) + (part**2).sum(-1) - 2 * (parts @ part.transpose(0, 2, 1))[..., 0]
    return 1 - different / np.maximum(contrast, 1e-3)


@functools.cache
def windows():
    """Returns the matrix from a thumbnail to all its parts, `(SIDE * SIDE, parts * CELLS * CELLS)`."""
    places = []
    for scale in SCALES:
        steps = np.linspace(0, 1 - scale, STEPS) if scale < 1 else [0.0]
        along = [area_matrix(SIDE, CELLS, SIDE * start, SIDE * (start + scale)) for start in steps]
        places += [np.kron(down, across).T for down in along for across in along]
    return np.concatenate(places, 1).astype("float32")
