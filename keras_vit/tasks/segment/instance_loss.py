"""Loss of a box, classes and a mask for each query, in groups that are matched one by one."""

import keras
from keras import ops

from keras_vit.tasks.detect.group_loss import SetsLoss
from keras_vit.tasks.segment import mask_loss
from keras_vit.utils.instance_maps import PER_CLASS
from keras_vit.utils.taking import rows_of


@keras.saving.register_keras_serializable(package="keras_vit")
class InstanceLoss(SetsLoss):
    """RF-DETR's loss with masks: `GroupLoss`, and the masks' binary cross-entropy and Dice loss.

    Robinson et al. 2025 (arXiv:2511.09554). Both are part of the cost of a match, and are added to the loss of matched
    pairs. Masks are compared in every cell of the predicted masks, where the authors draw points; the true mask of a
    cell is that of the pixel at its center. The true box of an object is that around its pixels. An object without a
    cell of its own does not count.

    Args:
        units: Number of classes.
        masks: Weight of the binary cross-entropy.
        dice: Weight of the Dice loss, `1 - (2 * sum(p * t) + 1) / (sum(p) + sum(t) + 1)`.
        cost, l1, giou: As in `GroupLoss`.

    Call arguments:
        y_true: Integers, `(batch, height, width, 1)`: `class * 1000 + number` in the pixels of an object, below 0
            elsewhere. Of more objects than queries, the largest count.
        y_pred: `(batch, stages, groups, queries, 4 + classes + rows * columns)`: top, left, bottom and right as shares
            of the image, the logits of the classes, then those of the mask, row by row, as `InstanceLearner` returns
            them.

    Returns:
        `(batch,)`, the loss of each image; their mean is the loss of the batch.

    Raises:
        ValueError: If the masks do not have the aspect ratio of the images.
    """

    def __init__(self, units, masks=5.0, dice=5.0, **kwargs):
        super().__init__(**kwargs)
        self.units = int(units)
        self.masks = float(masks)
        self.dice = float(dice)

    def call(self, y_true, y_pred):
        y_true, y_pred = ops.cast(y_true, "int32"), ops.cast(y_pred, "float32")
        stages, groups, queries, numbers = y_pred.shape[1:]
        cells, sets = numbers - 4 - self.units, stages * groups  # of an image
        boxes, masks = y_pred[..., : 4 + self.units], y_pred[..., 4 + self.units :]
        ids, truth = mask_loss.true_masks(y_true, cells, queries)  # (batch, objects), (batch, objects, cells)
        objects = ids.shape[1]
        every = ops.stop_gradient(ops.reshape(masks, (-1, sets * queries, cells)))
        costs = mask_loss.costs(every, truth, self.masks, self.dice)  # (batch, objects, sets * queries)
        costs = ops.transpose(ops.reshape(costs, (-1, objects, sets, queries)), (0, 2, 1, 3))

        def of_masks(matched):
            mine = ops.reshape(masks, (-1, queries, cells))
            mine = rows_of(mine, ops.maximum(matched, 0))  # (n, objects, cells)
            mine = ops.reshape(mine, (-1, sets, objects, cells))
            return ops.reshape(mask_loss.paired(mine, truth[:, None], self.masks, self.dice), (-1, objects))

        labels = ops.cast(ops.where(ids >= 0, ids // PER_CLASS, -1), "float32")
        y_true = ops.concatenate([true_boxes(y_true, ids), labels[..., None]], axis=-1)
        return self.of_objects(y_true, boxes, ops.reshape(costs, (-1, objects, queries)), of_masks)


def true_boxes(maps, ids):
    """Returns the boxes around objects, float32 `(batch, objects, 4)`: top, left, bottom, right as shares of the image.

    Args:
        maps: Integers, `(batch, height, width, 1)`.
        ids: The objects' values in them, `(batch, objects)`; those below 0 have boxes that mean nothing.
    """
    inside = ops.equal(maps[:, None, :, :, 0], ids[:, :, None, None])  # (batch, objects, height, width)
    (top, bottom), (left, right) = (_ends(ops.any(inside, axis=axis)) for axis in (3, 2))
    return ops.stack([top, left, bottom, right], axis=-1)


def _ends(inside):
    """Returns where the first true value begins, and the last one ends, as shares of the last axis."""
    side = inside.shape[-1]
    inside = ops.cast(inside, "int32")
    first, last = ops.argmax(inside, axis=-1), side - ops.argmax(ops.flip(inside, axis=-1), axis=-1)
    return ops.cast(first, "float32") / side, ops.cast(last, "float32") / side
