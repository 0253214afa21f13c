"""Loss of sets of boxes with a score for each class alone, in groups that are matched one by one."""

import keras
from keras import ops

from keras_vit.tasks.detect.assignment import assign
from keras_vit.tasks.detect.overlap import generalized_iou, paired_giou, paired_iou
from keras_vit.tasks.detect.set_loss import objects_first, places
from keras_vit.utils.configured import Loss
from keras_vit.utils.taking import rows_of

ALPHA, GAMMA = 0.25, 2.0  # exponents: of the score in the target of a class, and of the focal cost
LEAST = 0.01  # of the target of a matched box


class SetsLoss(Loss):
    """The loss of sets of boxes with a score for each class alone, each set matched by itself; see `GroupLoss`.

    Args:
        cost, l1, giou: As in `GroupLoss`.
    """

    alpha = 0.25  # weight of the class that is true in the focal cost; the others have one less that

    def __init__(self, cost=2.0, l1=5.0, giou=2.0, **kwargs):
        super().__init__(**kwargs)
        self.cost = float(cost)
        self.l1 = float(l1)
        self.giou = float(giou)

    def of_objects(self, y_true, y_pred, costs=0.0, more=None):
        """Returns the loss of each image, `(batch,)`.

        Args:
            y_true: As of `GroupLoss`, float32, padding last, no more objects than queries.
            y_pred: `(batch, stages, groups, queries, 4 + classes)`.
            costs: What is added to the costs of all pairs, `(batch * stages * groups, objects, queries)`.
            more: Function from the query of each object, int32 `(batch * stages * groups, objects)`, -1 for padding, to
                what is added to the loss of each, of the same shape; or `None`.
        """
        stages, groups, queries, channels = y_pred.shape[1:]
        count = self.divisor(ops.sum(ops.cast(y_true[..., 4] >= 0, "float32"), axis=1))
        y_true = ops.repeat(y_true, stages * groups, axis=0)
        y_pred = ops.reshape(ops.cast(y_pred, "float32"), (-1, queries, channels))  # (n, queries, channels)
        edges, logits = y_pred[..., :4], y_pred[..., 4:]
        true_edges, is_object = y_true[..., :4], ops.cast(y_true[..., 4] >= 0, "float32")
        labels = ops.maximum(ops.cast(y_true[..., 4], "int32"), 0)
        costs = costs + self._costs(true_edges, labels, edges, logits)
        matched = assign(costs, ops.cast(ops.sum(is_object, axis=1), "int32"))  # (n, objects): the query of each
        predicted = rows_of(edges, ops.maximum(matched, 0))  # (n, objects, 4)
        mine = ops.cast(ops.equal(matched[..., None], ops.arange(queries, dtype="int32")), "float32")
        loss = self._of_classes(logits, labels, mine, paired_iou(predicted, true_edges))
        apart = self.l1 * ops.sum(ops.abs(places(predicted) - places(true_edges)), axis=-1)
        apart = apart + self.giou * (1 - paired_giou(predicted, true_edges))
        apart = apart if more is None else apart + more(matched)
        loss = loss + ops.sum(is_object * apart, axis=-1)
        return ops.sum(ops.reshape(loss, (-1, stages * groups)), axis=1) / (count * groups)  # (batch,)

    def divisor(self, objects):
        """Returns by what the loss of each image is divided, from the number of its objects, `(batch,)`."""
        return ops.maximum(ops.mean(objects), 1e-6)

    def _costs(self, true_edges, labels, edges, logits):
        """Returns the costs of all pairs, `(n, objects, queries)`."""
        shares = ops.sigmoid(logits)
        focal = self.alpha * (1 - shares) ** GAMMA * -ops.log_sigmoid(logits)
        focal = focal - (1 - self.alpha) * shares**GAMMA * -ops.log_sigmoid(-logits)
        focal = rows_of(ops.transpose(focal, (0, 2, 1)), labels)  # (n, objects, queries)
        l1 = ops.sum(ops.abs(ops.expand_dims(places(true_edges), 2) - ops.expand_dims(places(edges), 1)), axis=-1)
        return self.cost * focal + self.l1 * l1 - self.giou * generalized_iou(true_edges, edges)

    def _of_classes(self, logits, labels, mine, overlap):
        """Returns the loss of the classes, `(n,)`; `mine` says which query is matched with which object."""
        shares = ops.sigmoid(logits)
        of_label = ops.one_hot(labels, logits.shape[-1], dtype="float32")
        truth = ops.einsum("noq,noc->nqc", mine, of_label)
        overlap = ops.einsum("noq,no->nq", mine, ops.maximum(overlap, 0))
        target = ops.maximum(shares**ALPHA * overlap[..., None] ** (1 - ALPHA), LEAST)
        target = ops.stop_gradient(truth * target)
        others = ops.where(truth > 0, 1 - target, shares**GAMMA)
        return -ops.sum(target * ops.log_sigmoid(logits) + others * ops.log_sigmoid(-logits), axis=(1, 2))


@keras.saving.register_keras_serializable(package="keras_vit")
class GroupLoss(SetsLoss):
    """RF-DETR's loss: in each group of queries, each object is matched with one box, with the smallest total cost.

    Robinson et al. 2025 (arXiv:2511.09554), after LW-DETR (Chen et al. 2024, arXiv:2406.03459, section 3.2) and Group
    DETR (arXiv:2207.13085). The cost of a match is a focal cost of the object's class and two distances of the boxes,
    L1 (of center, height and width) and generalized IoU. The target of a matched box's class is the product of its
    score and its IoU, to the powers of 0.25 and 0.75; all other scores are pushed down by their square. Classes and
    distances are summed over the first stage and all blocks, and divided by the objects of the batch and the groups.

    Args:
        queries: Number of queries of a group; `y_pred` has one group in evaluation, and all in training.
        cost: Weight of the focal cost in matching.
        l1: Weight of the L1 distance.
        giou: Weight of one minus the generalized IoU.

    Call arguments:
        y_true: `(batch, objects, 5)`: top, left, bottom, right as shares of the image, 0..1, and the class. Rows with a
            class below 0, padding and crowds, are no objects.
        y_pred: `(batch, stages, groups * queries, 4 + classes)`, the output of `DeformableDecoder`.

    Returns:
        `(batch,)`, the loss of each image; their mean is the loss of the batch.
    """

    def __init__(self, queries, cost=2.0, l1=5.0, giou=2.0, **kwargs):
        super().__init__(cost, l1, giou, **kwargs)
        self.queries = queries

    def call(self, y_true, y_pred):
        stages, channels = y_pred.shape[1], y_pred.shape[3]
        y_pred = ops.reshape(y_pred, (-1, stages, y_pred.shape[2] // self.queries, self.queries, channels))
        return self.of_objects(objects_first(ops.cast(y_true, "float32"), self.queries), y_pred)
