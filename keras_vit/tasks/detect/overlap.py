"""Overlap of boxes. Boxes are (top, left, bottom, right), in any unit."""

from keras import ops


def area(boxes):
    """Returns the area of each box, `(..., n)`, from boxes, `(..., n, 4)`."""
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def iou(boxes, others):
    """Returns the intersection over union of every box with every other.

    Args:
        boxes: Tensor, `(..., n, 4)`.
        others: Tensor, `(..., m, 4)`.

    Returns:
        Tensor, `(..., n, m)`, 0..1; 0 for two boxes without area.
    """
    return _shares(boxes, others)[0]


def generalized_iou(boxes, others):
    """Returns the generalized intersection over union of every box with every other, from -1 to 1.

    Rezatofighi et al. 2019 (arXiv:1902.09630), algorithm 1: the IoU minus the share of the smallest box around both
    that neither covers.

    Args:
        boxes: Tensor, `(..., n, 4)`.
        others: Tensor, `(..., m, 4)`.

    Returns:
        Tensor, `(..., n, m)`.
    """
    shares, union = _shares(boxes, others)
    around = area(_pairs(boxes, others, ops.minimum, ops.maximum))
    return shares - _ratio(around - union, around)


def paired_giou(boxes, others):
    """Returns the generalized IoU, `(...)`, -1..1, of each box with the box at the same index, both `(..., 4)`."""
    return generalized_iou(ops.expand_dims(boxes, -2), ops.expand_dims(others, -2))[..., 0, 0]


def paired_iou(boxes, others):
    """Returns the intersection over union, `(...)`, 0..1, of each box with the box at the same index, `(..., 4)`."""
    return iou(ops.expand_dims(boxes, -2), ops.expand_dims(others, -2))[..., 0, 0]


def _shares(boxes, others):
    both = _pairs(boxes, others, ops.maximum, ops.minimum)
    sides = ops.maximum(both[..., 2:] - both[..., :2], 0)
    common = sides[..., 0] * sides[..., 1]
    union = ops.expand_dims(area(boxes), -1) + ops.expand_dims(area(others), -2) - common
    return _ratio(common, union), union


def _pairs(boxes, others, first, last):
    boxes, others = ops.expand_dims(boxes, -2), ops.expand_dims(others, -3)
    return ops.concatenate([first(boxes[..., :2], others[..., :2]), last(boxes[..., 2:], others[..., 2:])], axis=-1)


def _ratio(part, whole):
    """Returns `part / whole`, or 0 where `whole` is 0, with a finite gradient there too."""
    safe = ops.where(whole > 0, whole, 1.0)
    return ops.where(whole > 0, part / safe, 0.0)
