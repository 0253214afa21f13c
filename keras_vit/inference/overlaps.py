"""Overlap of boxes as NumPy arrays: of any number, without compiling. Edges are top, left, bottom, right."""

import numpy as np


def overlaps(boxes, box):
    """Returns the intersection over union of boxes, `(boxes, 4)`, with one, `(4,)`; 0 without any area."""
    common, union, _ = _areas(boxes, box)
    return _ratio(common, union)


def generalized(boxes, box):
    """Returns the generalized overlap, -1..1, of boxes with one; Rezatofighi et al. 2019 (arXiv:1902.09630)."""
    common, union, around = _areas(boxes, box)
    return _ratio(common, union) - _ratio(around - union, around)


def _areas(boxes, box):
    """Returns the areas of the intersections, of the unions, and of the smallest boxes around both."""

    def area(start, end):
        return np.prod(np.maximum(end - start, 0), axis=-1)

    first, second = (boxes[:, :2], boxes[:, 2:]), (box[:2], box[2:])
    common = area(np.maximum(first[0], second[0]), np.minimum(first[1], second[1]))
    around = area(np.minimum(first[0], second[0]), np.maximum(first[1], second[1]))
    return common, area(*first) + area(*second) - common, around


def _ratio(part, whole):
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
