"""Loss of a class and a mask for each query, by matching each object with one query."""

import keras
from keras import ops

from keras_vit.tasks.detect.assignment import assign
from keras_vit.tasks.segment import mask_loss
from keras_vit.utils.configured import Loss
from keras_vit.utils.instance_maps import PER_CLASS
from keras_vit.utils.taking import rows_of

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
        ids, truth = mask_loss.true_masks(ops.cast(y_true, "int32"), cells, queries)
        y_pred = ops.reshape(ops.cast(y_pred, "float32"), (-1, queries, numbers))  # (n, queries, numbers)
        logits, masks = y_pred[..., : self.units + 1], y_pred[..., self.units + 1 :]
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
        predicted = rows_of(masks, ops.maximum(matched, 0))  # (n, objects, cells)
        apart = mask_loss.paired(predicted, truth, self.masks, self.dice)  # (n, objects)
        apart = ops.sum(ops.reshape(ops.sum(is_object * apart, axis=1), (-1, stages)), axis=1)
        return self.classes * entropy + apart / count  # (batch,)

    def _costs(self, logits, masks, labels, truth):
        """Returns the costs of all pairs, `(n, objects, queries)`."""
        classes = rows_of(ops.transpose(ops.softmax(logits), (0, 2, 1)), labels)  # (n, objects, queries)
        of_masks = mask_loss.costs(masks, truth, self.masks, self.dice)
        return of_masks - self.classes * classes


def _of_classes(logits, labels, mine):
    """Returns the weighted cross-entropy of all queries of an image, `(n,)`, and the sum of its weights, `(n,)`."""
    none = 1 - ops.sum(mine, axis=1)  # (n, queries)
    truth = ops.einsum("noq,noc->nqc", mine, ops.one_hot(labels, logits.shape[-1] - 1, dtype="float32"))
    truth = ops.concatenate([truth, none[..., None]], axis=-1)
    weights = NONE_WEIGHT * none + 1 - none
    entropy = -ops.sum(truth * ops.log_softmax(logits), axis=-1)
    return ops.sum(weights * entropy, axis=-1), ops.sum(weights, axis=-1)
