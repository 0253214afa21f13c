"""Scores that several floors need, and how scores are written."""

import numpy as np

SENSITIVITY = 0.8  # the partial area is above this


def partial_auc(logits, labels):
    """Area under the ROC curve where sensitivity is above 80 %: 0 to 0.2, by chance 0.02.

    The metric of the ISIC 2024 challenge (skin lesions, few of them malignant). The second of the two classes is the
    positive one.
    """
    from sklearn.metrics import roc_auc_score

    if logits.shape[-1] != 2 or set(labels.tolist()) != {0, 1}:
        raise ValueError(
            f"`partial_auc` must have images of both of two classes. Received: {logits.shape[-1]} classes, images of "
            f"{len(set(labels.tolist()))}"
        )
    most = 1 - SENSITIVITY
    # scikit-learn limits false positives, to `most`, and scales to 0.5 .. 1: exchange the classes, and scale back.
    scaled = roc_auc_score(1 - labels, logits[:, 0] - logits[:, 1], max_fpr=most)
    least = most**2 / 2
    return least + (most - least) * (scaled - 0.5) / 0.5


def iou(matrix):
    """Returns the intersection over union of each class, NaN for a class that is in no mask and no prediction."""
    right = np.diag(matrix).astype("float64")
    union = matrix.sum(0) + matrix.sum(1) - right
    return np.divide(right, union, out=np.full(len(right), np.nan), where=union > 0)


def written(name, value):
    """Returns a score as text: accuracies and intersections over union in percent, any other with four decimals."""
    return f"{value:.2%}" if any(word in name.lower() for word in SHARES) else f"{value:.4f}"


SHARES = ("accuracy", "iou", "top-1", "calibration")
