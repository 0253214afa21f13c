"""The loss of several labels for each image."""

import keras
import numpy as np
from keras import ops

from keras_vit.utils.configured import Loss

MOST = 10.0  # of the weights of positives, either way
FOCUS, MARGIN = 4.0, 0.05  # of the negatives of the asymmetric loss: its paper's for MS-COCO, section 4.1


def positive_weights(labels):
    """Returns the factor on the loss of each class's positives: negatives over positives, from 1 / 10 to 10.

    Both sides of a class then count alike, as by `pos_weight` of PyTorch's `BCEWithLogitsLoss`; the bound keeps a class
    of few images from ruling the gradient. A class without positives, or without negatives, has the weight 1.

    Args:
        labels: `(images, classes)`, 1, 0 or -1 for unknown.
    """
    positives, negatives = (labels == 1).sum(0), (labels == 0).sum(0)
    ratio = np.clip(negatives / np.maximum(positives, 1), 1 / MOST, MOST)
    return np.where((positives > 0) & (negatives > 0), ratio, 1.0)


@keras.saving.register_keras_serializable(package="keras_vit")
class SeveralLoss(Loss):
    """Binary cross-entropies of an image, one for each class, summed. Unknown labels add nothing.

    `"asymmetric"` makes much of positives where most labels are negative, or are missing (Ridnik et al. 2021,
    arXiv:2009.14119, equations 4 to 7): with the probability p, a positive costs `-log(p)`, and a negative
    `-p_m**4 * log(1 - p_m)` with `p_m = max(p - 0.05, 0)`.

    Args:
        kind: `"sigmoid"` or `"asymmetric"`.
        label_smoothing: `s` moves 1 to `1 - s / 2` and 0 to `s / 2`.
        weights: Factor on the loss of positives, one per class; `None` for 1.

    Call arguments:
        y_true: `(batch, classes)`, from 0 to 1; below 0 where it is unknown.
        y_pred: `(batch, classes)`, logits.
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
