"""Loss of a feature map with one predicted box at each position."""

import math

import keras
from keras import ops

from keras_vit.models.outputs import ignored
from keras_vit.tasks.detect.overlap import area, paired_giou
from keras_vit.utils.configured import Loss
from keras_vit.utils.taking import rows_of

ALPHA, BETA = 2.0, 4.0  # exponents of the focal loss, as in "Objects as Points"
REGION = 0.54  # share of a box's sides: positions inside learn its edges, as in TTFNet
LEAST = math.exp(-4.5)  # a Gaussian at three deviations, the border of that region


@keras.saving.register_keras_serializable(package="keras_vit")
class PointLoss(Loss):
    """Focal loss of the class heat maps, plus a generalized IoU loss of the boxes near each object's center.

    The target of a class is a Gaussian around each center, with the aspect ratio of the box: Zhou et al. 2019
    (arXiv:1904.07850), equation 1, with the Gaussian of Liu et al. 2019 (TTFNet, arXiv:1909.00700), section 3. Inside
    it, positions learn the edges of the smallest object around them, weighted by the Gaussian. Both sums are divided by
    the number of objects in the image. Inside a region to ignore, such as a crowd, the class has no loss.

    Args:
        box_weight: Weight of the box loss.

    Call arguments:
        y_true: `(batch, most, 5)`: top, left, bottom, right as shares of the image, 0..1, and the class; -1 as padding,
            -2 - c for a region that is ignored for class c.
        y_pred: `(batch, rows, columns, 4 + classes)`, the input of `PointBoxes`.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, box_weight=5.0, **kwargs):
        super().__init__(**kwargs)
        self.box_weight = float(box_weight)

    def call(self, y_true, y_pred):
        from keras_vit.layers.heads.point_boxes import edges

        boxes, y_pred = ops.cast(y_true, "float32"), ops.cast(y_pred, "float32")
        heat, true_edges, weights = map(ops.stop_gradient, targets(boxes, y_pred.shape[1:3], y_pred.shape[3] - 4))
        logits = y_pred[..., 4:]
        shares = ops.sigmoid(logits)
        at_center = (1 - shares) ** ALPHA * ops.log_sigmoid(logits)
        around = (1 - heat) ** BETA * shares**ALPHA * ops.log_sigmoid(-logits)
        around = around * ops.stop_gradient(1 - regions(boxes, y_pred.shape[1:3], logits.shape[3]))
        focal = -ops.sum(ops.where(heat == 1, at_center, around), axis=(1, 2, 3))
        apart = ops.sum(weights * (1 - paired_giou(edges(y_pred), true_edges)), axis=(1, 2))
        objects = ops.sum(ops.cast(boxes[..., 4] >= 0, "float32"), axis=1)
        return (focal + self.box_weight * apart) / ops.maximum(objects, 1)  # (batch,)


def targets(boxes, size, classes):
    """Returns the targets of a feature map.

    Args:
        boxes: float32 `(batch, most, 5)`, as in `PointLoss`.
        size: `(rows, columns)` of the feature map.
        classes: Number of classes.

    Returns:
        Three float32 tensors: the Gaussians, `(batch, rows, columns, classes)`, 1 at the centers; the edges of the
        smallest object around each position, `(batch, rows, columns, 4)`; and their weights, `(batch, rows, columns)`,
        which sum to 1 for an object that no smaller one covers.
    """
    batch = ops.shape(boxes)[0]
    order = ops.argsort(-area(boxes[..., :4]), axis=1)  # the smallest last: it overwrites
    boxes = rows_of(boxes, order)
    along = [_gaussian(boxes[..., i], boxes[..., i + 2], side) for i, side in enumerate(size)]
    along[0] = along[0] * ops.cast(boxes[..., 4:] >= 0, "float32")  # (batch, most, rows), then (batch, most, columns)

    def add(i, state):
        heat, edges, weights = state
        box = ops.take(boxes, i, axis=1)
        bell = ops.expand_dims(ops.take(along[0], i, axis=1), 2) * ops.expand_dims(ops.take(along[1], i, axis=1), 1)
        one = ops.cast(ops.expand_dims(box[:, 4], -1) == ops.arange(classes, dtype="float32"), "float32")
        heat = ops.maximum(heat, bell[..., None] * one[:, None, None])
        near = bell > LEAST
        inside = ops.where(near, bell, 0.0)
        inside = inside / ops.maximum(ops.sum(inside, axis=(1, 2), keepdims=True), 1e-6)
        edges = ops.where(near[..., None], box[:, None, None, :4], edges)
        return heat, edges, ops.where(near, inside, weights)

    empty = [ops.zeros((batch, *size, *more), "float32") for more in ((classes,), (4,), ())]
    return ops.fori_loop(0, boxes.shape[1], add, tuple(empty))


def regions(boxes, size, classes):
    """Returns 1 where a class is ignored, else 0, `(batch, rows, columns, classes)`; arguments as in `targets`."""
    kinds = ops.expand_dims(ignored(boxes[..., 4]), -1) == ops.arange(
        classes, dtype="float32"
    )  # (batch, most, classes)
    rows, columns = (_inside(boxes[..., i], boxes[..., i + 2], side) for i, side in enumerate(size))
    rows = ops.expand_dims(rows, -1) * ops.expand_dims(ops.cast(kinds, "float32"), 2)  # (batch, most, rows, classes)
    covered = ops.einsum("bmrk,bmc->brck", rows, columns)
    return ops.cast(covered > 0, "float32")


def _inside(low, high, side):
    """Returns 1 where a position's center is inside a box along one axis, else 0, `(batch, most, side)`."""
    middle = (ops.arange(side, dtype="float32") + 0.5) / side
    return ops.cast((middle >= low[..., None]) & (middle < high[..., None]), "float32")


def _gaussian(low, high, side):
    """Returns the Gaussian of each box along one axis, `(batch, most, side)`, 1 at the position of its center."""
    center = ops.clip(ops.floor((low + high) / 2 * side), 0, side - 1)
    deviation = ops.maximum((high - low) * side * REGION / 6, 1e-3)
    away = (ops.arange(side, dtype="float32") - center[..., None]) / deviation[..., None]
    return ops.exp(-0.5 * ops.minimum(away**2, 160.0))
