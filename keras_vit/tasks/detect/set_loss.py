"""Loss of a set of boxes, by matching each object with one box."""

import keras
from keras import ops

from keras_vit.tasks.detect.assignment import assign
from keras_vit.tasks.detect.overlap import generalized_iou, paired_giou
from keras_vit.utils.configured import Loss
from keras_vit.utils.taking import rows_of

NONE_WEIGHT = 0.1  # weight of the cross-entropy of a box without an object


@keras.saving.register_keras_serializable(package="keras_vit")
class SetLoss(Loss):
    """DETR's loss: each object is matched with one box, with the smallest total cost.

    Carion et al. 2020 (arXiv:2005.12872), section 3.1 and appendix A.2. The cost of a match is minus the probability of
    the object's class, plus two distances of the boxes: L1 (of center, height and width) and generalized IoU. The loss
    is the cross-entropy of the classes, where boxes without an object have the class "none", plus the two distances,
    divided by the number of objects. If a head returns the boxes of several blocks, the losses of all blocks are added,
    as the authors' auxiliary losses.

    Args:
        l1: Weight of the L1 distance.
        giou: Weight of one minus the generalized IoU.

    Call arguments:
        y_true: `(batch, objects, 5)`: top, left, bottom, right as shares of the image, 0..1, and the class. Rows with a
            class below 0, padding and crowds, are no objects, as in DETR's code.
        y_pred: `(batch, blocks, queries, 4 + classes + 1)`, the output of `SetHead`.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, l1=5.0, giou=2.0, **kwargs):
        super().__init__(**kwargs)
        self.l1 = float(l1)
        self.giou = float(giou)

    def call(self, y_true, y_pred):
        blocks, queries, channels = y_pred.shape[1:]
        y_true, y_pred = ops.cast(y_true, "float32"), ops.cast(y_pred, "float32")
        y_true = ops.repeat(objects_first(y_true, queries), blocks, axis=0)
        y_pred = ops.reshape(y_pred, (-1, queries, channels))  # (batch * blocks, queries, channels)
        edges, logits = y_pred[..., :4], y_pred[..., 4:]
        true_edges, is_object = y_true[..., :4], y_true[..., 4] >= 0
        labels = ops.where(is_object, ops.cast(y_true[..., 4], "int32"), 0)
        shares = rows_of(ops.transpose(ops.softmax(logits), (0, 2, 1)), labels)  # (n, objects, queries)
        costs = self._apart(true_edges, edges) - shares
        matched = assign(costs, ops.sum(ops.cast(is_object, "int32"), axis=1))  # (n, objects): the query of each
        mine = ops.cast(ops.equal(matched[..., None], ops.arange(queries, dtype="int32")), "float32")
        none = 1 - ops.sum(mine, axis=1)  # (n, queries)
        truth = ops.einsum("noq,noc->nqc", mine, ops.one_hot(labels, channels - 5, dtype="float32"))
        truth = ops.concatenate([truth, none[..., None]], axis=-1)
        weights = NONE_WEIGHT * none + 1 - none
        entropy = -ops.sum(truth * ops.log_softmax(logits), axis=-1)
        entropy = ops.sum(weights * entropy, axis=-1) / ops.sum(weights, axis=-1)
        predicted = rows_of(edges, ops.maximum(matched, 0))  # (n, objects, 4)
        apart = self.l1 * ops.sum(ops.abs(places(predicted) - places(true_edges)), axis=-1)
        apart = apart + self.giou * (1 - paired_giou(predicted, true_edges))
        is_object = ops.cast(is_object, "float32")
        apart = ops.sum(is_object * apart, axis=-1) / ops.maximum(ops.sum(is_object, axis=-1), 1)
        return ops.sum(ops.reshape(entropy + apart, (-1, blocks)), axis=1)  # (batch,)

    def _apart(self, true_edges, edges):
        """Returns the weighted distances of all pairs of boxes, `(n, objects, queries)`."""
        l1 = ops.sum(ops.abs(ops.expand_dims(places(true_edges), 2) - ops.expand_dims(places(edges), 1)), axis=-1)
        return self.l1 * l1 - self.giou * generalized_iou(true_edges, edges)


def objects_first(y_true, most):
    """Returns true boxes, `(batch, objects, 5)`, with padding last, at most `most` of an image."""
    first = ops.argsort(ops.cast(y_true[..., 4] < 0, "int32"), axis=1)
    return rows_of(y_true, first)[:, :most]


def places(edges):
    """Returns center row and column, height and width, `(..., 4)`, from edges, `(..., 4)`."""
    return ops.concatenate([(edges[..., :2] + edges[..., 2:]) / 2, edges[..., 2:] - edges[..., :2]], axis=-1)
