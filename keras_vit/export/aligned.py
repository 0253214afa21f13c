"""Compares the outputs of a detector box by box: two files may return the same boxes in different orders."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from keras_vit.models.outputs import returns_boxes, returns_images

FAINT, CLEAR = 0.1, 0.2  # scores between which boxes begin to count: which of the faint ones are returned is chance
APART = 500  # boxes, one of which may differ


def aligned(model, outputs, expected):
    """Returns two outputs of a model so that their difference, and their largest channel, say how alike they are.

    Args:
        model: The Keras model. If it returns neither boxes nor images, both outputs are returned as they are.
        outputs: Array of the outputs of one file.
        expected: The same of another.

    Returns:
        Both outputs. Of images, all pixels are one vector. For boxes, the edges become half of their product with the
        score, and the rows of `outputs` come in the order that fits `expected` best. Rows are then multiplied by 0 up
        to a score of 0.1, rising to 1 at 0.2.
    """
    if returns_images(model):
        return outputs.reshape(len(outputs), -1), expected.reshape(len(expected), -1)
    if not returns_boxes(model):
        return outputs, expected
    both = []
    for rows in (outputs, expected):
        rows = np.asarray(rows, "float32")
        best = rows[..., 4:].max(-1, keepdims=True)
        seen = np.clip((best - FAINT) / (CLEAR - FAINT), 0, 1)
        both.append(np.concatenate([rows[..., :4] * best / 2, rows[..., 4:]], axis=-1) * seen)
    for ours, theirs in zip(*both):
        apart = np.abs(theirs[:, None] - ours[None]).sum(-1)
        ours[:] = ours[linear_sum_assignment(np.nan_to_num(apart, nan=1e9))[1]]
    return both[0], both[1]


def largest(model, outputs, expected):
    """Returns the largest difference of aligned outputs; of boxes that count, without the worst in `APART`.

    Where two neighbours are peaks of nearly the same height, rounding decides which of them is a box.
    """
    if not returns_boxes(model):
        return float(np.abs(outputs - expected).max())
    worst = np.abs(outputs - expected).max(-1)[(outputs != 0).any(-1) | (expected != 0).any(-1)]
    if not np.isfinite(worst).all():
        return float("nan")
    return float(np.sort(worst)[len(worst) - 1 - len(worst) // APART]) if worst.size else 0.0


def agreement(model, outputs, expected):
    """Returns the share of aligned outputs with the same top-1 class; of images, of the same pixel values.

    Of a single logit, it is the share with the same sign.
    """

    def same(found):
        if returns_images(model):
            return np.rint(found)
        return found.argmax(-1) if found.shape[-1] > 1 else found > 0

    return float((same(outputs) == same(expected)).mean())
