"""True masks in the cells of predicted ones, and how far masks are apart: what losses of objects share."""

import math

from keras import ops


def true_masks(maps, cells, most):
    """Returns the largest objects of images, and their masks in the cells of predicted ones.

    A cell has the value of the pixel at its center.

    Args:
        maps: int32, `(batch, height, width, 1)`: the value of its object in each pixel, below 0 elsewhere; see
            `keras_vit.utils.instance_maps`.
        cells: Number of cells of a predicted mask.
        most: Largest number of objects.

    Returns:
        The objects' values, int32 `(batch, objects)`, then -1; and masks, float32 `(batch, objects, cells)`, 0 or 1.

    Raises:
        ValueError: If masks of so many cells do not have the aspect ratio of the images.
    """
    values = _at_cells(maps, _size_of(cells, maps.shape[1:3]))
    ids = largest(values, min(most, cells))
    return ids, ops.cast(ops.equal(values[:, None], ids[..., None]), "float32")


def costs(masks, truth, entropy, dice):
    """Returns the weighted sum of binary cross-entropy and Dice loss of all pairs, `(batch, objects, masks)`.

    Args:
        masks: Logits, `(batch, masks, cells)`.
        truth: 0 and 1, `(batch, objects, cells)`.
        entropy: Weight of the binary cross-entropy, the mean over the cells.
        dice: Weight of the Dice loss, `1 - (2 * sum(p * t) + 1) / (sum(p) + sum(t) + 1)`.
    """
    shares = ops.sigmoid(masks)
    of_cells = ops.mean(ops.softplus(masks), axis=-1)[:, None]
    of_cells = of_cells - ops.matmul(truth, ops.swapaxes(masks, 1, 2)) / masks.shape[-1]
    both = ops.matmul(truth, ops.swapaxes(shares, 1, 2))
    either = ops.sum(truth, axis=-1)[..., None] + ops.sum(shares, axis=-1)[:, None]
    return entropy * of_cells + dice * (1 - (2 * both + 1) / (either + 1))


def paired(masks, truth, entropy, dice):
    """Returns the same of each mask and the object at its index, `(..., objects)`, from `(..., objects, cells)`."""
    shares = ops.sigmoid(masks)
    of_cells = ops.mean(ops.softplus(masks) - masks * truth, axis=-1)
    both, either = ops.sum(shares * truth, axis=-1), ops.sum(shares + truth, axis=-1)
    return entropy * of_cells + dice * (1 - (2 * both + 1) / (either + 1))


def _size_of(cells, size):
    """Returns `(rows, columns)` of masks of so many cells, with the aspect ratio of images of a size."""
    rows = round(math.sqrt(cells * size[0] / size[1]))
    if rows * (cells // rows) != cells:
        raise ValueError(f"Masks must have the images' aspect ratio, {size[0]} to {size[1]}. Received: {cells} cells")
    return rows, cells // rows


def _at_cells(maps, size):
    """Returns the value of the pixel at the center of each cell, `(batch, rows * columns)`, of maps of any size."""
    for axis, side in enumerate(size, 1):
        have = maps.shape[axis]
        maps = ops.take(maps, [(2 * i + 1) * have // (2 * side) for i in range(side)], axis=axis)
    return ops.reshape(maps, (-1, size[0] * size[1]))


def largest(values, most):
    """Returns the values from 0 that are in most cells, `(batch, most)`, then -1.

    Args:
        values: Integers, `(batch, cells)`.
        most: Number of them, at most the cells.
    """
    cells = values.shape[1]
    values = ops.sort(values, axis=1)
    changes = ops.not_equal(values[:, 1:], values[:, :-1])
    begins = ops.pad(changes, [[0, 0], [1, 0]], constant_values=True)
    places = ops.sort(ops.where(begins, ops.arange(cells), cells), axis=1)  # of the first cell of each value
    ends = ops.pad(places[:, 1:], [[0, 0], [0, 1]], constant_values=cells)
    found = ops.take_along_axis(values, ops.minimum(places, cells - 1), axis=1)
    areas = ops.where(ops.logical_and(places < cells, found >= 0), ends - places, 0)
    areas, order = ops.top_k(areas, most)
    return ops.where(areas > 0, ops.take_along_axis(found, order, axis=1), -1)
