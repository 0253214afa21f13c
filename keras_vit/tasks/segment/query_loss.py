"""Loss of a class and a mask for each query, by matching each object with one query."""

import math

import keras
from keras import ops

from keras_vit.tasks.detect.assignment import assign
from keras_vit.utils.configured import Loss
from keras_vit.utils.instance_maps import PER_CLASS

NONE_WEIGHT = 0.1  # weight of the cross-entropy of a query without an object


@keras.saving.register_keras_serializable(package="keras_vit")
class QueryLoss(Loss):
    """EoMT's loss, that of Mask2Former: each object is matched with one query, with the smallest total cost.

    Kerssies et al. 2025 (arXiv:2503.19108), section 3; Cheng et al. 2022 (arXiv:2112.01527), section 3.3 and appendix.
    The cost of a match is minus the probability of the object's class, plus the binary cross-entropy and the Dice loss
    of the masks. The loss is the cross-entropy of the classes, where queries without an object have the class "none",
    divided by the weights of all queries, plus the two of the masks, divided by the objects of the batch. The losses
    of all stages are added, each with a match of its own. Masks are compared in every cell of the predicted masks,
    where the authors draw 12,544 points; the true mask of a cell is that of the pixel at its center.

    Args:
        units: Number of classes.
        classes: Weight of the classes, in the cost and in the loss.
        masks: Weight of the binary cross-entropy.
        dice: Weight of the Dice loss, `1 - (2 * sum(p * t) + 1) / (sum(p) + sum(t) + 1)`.

    Call arguments:
        y_true: Integers, `(batch, height, width, 1)`: `class * 1000 + number` in the pixels of an object, below 0
            elsewhere. Of more objects than queries, the largest count.
        y_pred: `(batch, stages, queries, classes + 1 + rows * columns)`: logits of classes, the last of them "none",
            then those of the mask, row by row, as `QueryMasks` returns them.

    Returns:
        `(batch,)`, the loss of each image; their mean is the loss of the batch.

    Raises:
        ValueError: If the masks do not have the aspect ratio of the images.
    """

    def __init__(self, units, classes=2.0, masks=5.0, dice=5.0, **kwargs):
        super().__init__(**kwargs)
        self.units = int(units)
        self.classes = float(classes)
        self.masks = float(masks)
        self.dice = float(dice)

    def call(self, y_true, y_pred):
        stages, queries, numbers = y_pred.shape[1:]
        cells = numbers - self.units - 1
        size = _size_of(cells, y_true.shape[1:3])
        y_pred = ops.reshape(ops.cast(y_pred, "float32"), (-1, queries, numbers))  # (n, queries, numbers)
        logits, masks = y_pred[..., : self.units + 1], y_pred[..., self.units + 1 :]
        at_cells = _at_cells(ops.cast(y_true, "int32"), size)  # (batch, cells)
        ids = largest(at_cells, min(queries, cells))  # (batch, objects)
        truth = ops.cast(ops.equal(at_cells[:, None], ids[..., None]), "float32")  # (batch, objects, cells)
        is_object = ops.cast(ids >= 0, "float32")
        count = ops.maximum(ops.mean(ops.sum(is_object, axis=1)), 1e-6)
        labels = ops.repeat(ops.maximum(ids, 0) // PER_CLASS, stages, axis=0)  # (n, objects)
        truth, is_object = (ops.repeat(x, stages, axis=0) for x in (truth, is_object))
        costs = self._costs(logits, masks, labels, truth)
        matched = assign(costs, ops.cast(ops.sum(is_object, axis=1), "int32"))  # (n, objects): the query of each
        mine = ops.cast(ops.equal(matched[..., None], ops.arange(queries, dtype="int32")), "float32")
        entropy, weights = _of_classes(logits, labels, mine)  # (n,), (n,)
        of_batch = ops.maximum(ops.mean(ops.reshape(weights, (-1, stages)), axis=0), 1e-6)  # (stages,)
        entropy = ops.sum(ops.reshape(entropy, (-1, stages)) / of_batch, axis=1)  # (batch,)
        predicted = ops.take_along_axis(masks, ops.maximum(matched, 0)[..., None], axis=1)  # (n, objects, cells)
        apart = self.masks * ops.mean(ops.softplus(predicted) - predicted * truth, axis=-1)
        shares = ops.sigmoid(predicted)
        both, either = ops.sum(shares * truth, axis=-1), ops.sum(shares + truth, axis=-1)
        apart = apart + self.dice * (1 - (2 * both + 1) / (either + 1))  # (n, objects)
        apart = ops.sum(ops.reshape(ops.sum(is_object * apart, axis=1), (-1, stages)), axis=1)
        return self.classes * entropy + apart / count  # (batch,)

    def _costs(self, logits, masks, labels, truth):
        """Returns the costs of all pairs, `(n, objects, queries)`."""
        classes = ops.take_along_axis(ops.softmax(logits), labels[:, None], axis=2)  # (n, queries, objects)
        of_masks, shares = ops.transpose(masks, (0, 2, 1)), ops.sigmoid(masks)  # (n, cells, queries)
        entropy = ops.mean(ops.softplus(masks), axis=-1)[:, None] - ops.matmul(truth, of_masks) / masks.shape[-1]
        both = ops.matmul(truth, ops.transpose(shares, (0, 2, 1)))  # (n, objects, queries)
        either = ops.sum(truth, axis=-1)[..., None] + ops.sum(shares, axis=-1)[:, None]
        dice = 1 - (2 * both + 1) / (either + 1)
        return self.masks * entropy + self.dice * dice - self.classes * ops.transpose(classes, (0, 2, 1))


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


def _of_classes(logits, labels, mine):
    """Returns the weighted cross-entropy of all queries of an image, `(n,)`, and the sum of its weights, `(n,)`."""
    none = 1 - ops.sum(mine, axis=1)  # (n, queries)
    truth = ops.einsum("noq,noc->nqc", mine, ops.one_hot(labels, logits.shape[-1] - 1, dtype="float32"))
    truth = ops.concatenate([truth, none[..., None]], axis=-1)
    weights = NONE_WEIGHT * none + 1 - none
    entropy = -ops.sum(truth * ops.log_softmax(logits), axis=-1)
    return ops.sum(weights * entropy, axis=-1), ops.sum(weights, axis=-1)
