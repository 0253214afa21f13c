"""The loss of several labels for each image."""

import keras
import numpy as np
from keras import ops

from keras_vit.utils.configured import Loss

MOST = 10.0  # largest weight of positives; the smallest is its inverse
FOCUS, MARGIN = 4.0, 0.05  # of negatives in the asymmetric loss, as in section 4.1 for MS-COCO


def positive_weights(labels):
    """Returns a weight for the positives of each class: negatives over positives, from 1 / 10 to 10.

    Positives and negatives of a class then count equally, as with `pos_weight` of PyTorch's `BCEWithLogitsLoss`. The
    bounds keep a rare class from dominating the gradient. A class without positives or without negatives has weight 1.

    Args:
        labels: Array, `(images, classes)`, 1, 0 or -1 for unknown.

    Returns:
        float64 array, `(classes,)`.
    """
    positives, negatives = (labels == 1).sum(0), (labels == 0).sum(0)
    ratio = np.clip(negatives / np.maximum(positives, 1), 1 / MOST, MOST)
    return np.where((positives > 0) & (negatives > 0), ratio, 1.0)


@keras.saving.register_keras_serializable(package="keras_vit")
class SeveralLoss(Loss):
    """Sum over the classes of the binary cross-entropies of an image. Unknown labels add nothing.

    `"asymmetric"` emphasizes positives where most labels are negative or missing (Ridnik et al. 2021,
    arXiv:2009.14119, equations 4 to 7). With probability p, the loss of a positive is `-log(p)`, of a negative
    `-p_m**4 * log(1 - p_m)`, where `p_m = max(p - 0.05, 0)`.

    Args:
        kind: `"sigmoid"` or `"asymmetric"`.
        label_smoothing: `s` replaces 1 by `1 - s / 2` and 0 by `s / 2`.
        weights: Factor on the loss of positives, one per class; `None` for 1.

    Call arguments:
        y_true: `(batch, classes)`, 0..1; below 0 for unknown labels.
        y_pred: `(batch, classes)`, logits.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, kind="sigmoid", label_smoothing=0.0, weights=None, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind
        self.label_smoothing = label_smoothing
        self.weights = None if weights is None else [float(w) for w in weights]

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true, y_pred.dtype)
        mask = ops.cast(labels >= 0, y_pred.dtype)
        labels = ops.maximum(labels, 0.0) * (1 - self.label_smoothing) + self.label_smoothing / 2
        positive, negative = -ops.log_sigmoid(y_pred), -ops.log_sigmoid(-y_pred)
        if self.kind == "asymmetric":
            shifted = ops.maximum(ops.sigmoid(y_pred) - MARGIN, 0.0)
            negative = -(shifted**FOCUS) * ops.log1p(-shifted)
        if self.weights is not None:
            positive = positive * ops.convert_to_tensor(self.weights, y_pred.dtype)
        return ops.sum(mask * (labels * positive + (1 - labels) * negative), axis=-1)  # (batch,)
