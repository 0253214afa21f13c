"""A detector's outputs: as an exported file has them, and compared box by box.

Two files may return the same boxes in different orders.
"""

import numpy as np

EDGES = 4  # of a box, before its scores: top, left, bottom, right; as in `layers.heads.point_boxes`
FAINT, CLEAR = 0.1, 0.2  # scores between which boxes begin to count: which of the faint ones are returned is chance
APART = 500  # boxes, one of which may differ


def named(output, size, shares):
    """Returns outputs by name: `boxes` in pixels of an image of `size`, (height, width), and `scores`."""
    pixels = np.tile(size, 2).astype("float32")
    return {"boxes": output[..., :EDGES] * pixels, "scores": output[..., EDGES:]}


def packed(outputs, size):
    """Returns the model's one output: the inverse of `named`."""
    return np.concatenate([outputs["boxes"] / np.tile(size, 2).astype("float32"), outputs["scores"]], axis=-1)


def likely(output, least, several=False):
    """Returns the boxes of an image whose score is large enough: edges, classes and scores.

    Args:
        output: Boxes and scores, `(most, 4 + classes)`.
        least: Least score.
        several: Whether a box may have several classes: the best `most` pairs of a box and a class are then taken, best
            first, as DETR's successors are evaluated; else each box with its best class, in the order of the output.

    Returns:
        Arrays: `(n, 4)`, top, left, bottom and right as in `output`; class indices, `(n,)`; and scores, `(n,)`.
    """
    output = np.asarray(output)
    scores = output[:, EDGES:]
    if several:
        order = np.argsort(-scores, axis=None, kind="stable")[: len(output)]
        boxes, classes = np.unravel_index(order, scores.shape)
    else:
        boxes, classes = np.arange(len(output)), scores.argmax(-1)
    best = scores[boxes, classes]
    return output[boxes[best >= least], :EDGES], classes[best >= least], best[best >= least]


def aligned(outputs, expected):
    """Returns two outputs so that their difference, and their largest channel, say how alike they are.

    The edges become half of their product with the score, and the rows of `outputs` come in the order that fits
    `expected` best. Rows are then multiplied by 0 up to a score of 0.1, rising to 1 at 0.2.
    """
    from scipy.optimize import linear_sum_assignment

    both = []
    for rows in (outputs, expected):
        rows = np.asarray(rows, "float32")
        best = rows[..., EDGES:].max(-1, keepdims=True)
        seen = np.clip((best - FAINT) / (CLEAR - FAINT), 0, 1)
        both.append(np.concatenate([rows[..., :EDGES] * best / 2, rows[..., EDGES:]], axis=-1) * seen)
    for boxes, target in zip(*both):
        apart = np.abs(target[:, None] - boxes[None]).sum(-1)
        boxes[:] = boxes[linear_sum_assignment(np.nan_to_num(apart, nan=1e9))[1]]
    return both[0], both[1]


def largest(outputs, expected):
    """Returns the largest difference of aligned boxes that count, without the worst in `APART`.

    Where two neighbors are peaks of nearly the same height, rounding decides which of them is a box.
    """
    worst = np.abs(outputs - expected).max(-1)[(outputs != 0).any(-1) | (expected != 0).any(-1)]
    if not np.isfinite(worst).all():
        return float("nan")
    return float(np.sort(worst)[len(worst) - 1 - len(worst) // APART]) if worst.size else 0.0
