"""Metrics of a trained model, computed from its logits."""

import numpy as np

SENSITIVITY = 0.8  # the partial area is above this


def measure(names, logits, labels):
    """Computes metrics of predictions.

    Args:
        names: Names of metrics, of those in `METRICS`.
        logits: Array, `(images, classes)`.
        labels: Array, `(images,)`, class indices.

    Returns:
        A dictionary from names to numbers.

    Raises:
        ValueError: If a metric is not defined for these classes.
    """
    return {name: float(METRICS[name](np.asarray(logits, "float64"), np.asarray(labels))) for name in names}


def accuracy(logits, labels):
    """Top-1 accuracy, 0 to 1."""
    return np.mean(logits.argmax(-1) == labels)


def balanced_accuracy(logits, labels):
    """Mean of the accuracies of each class, 0 to 1."""
    from sklearn.metrics import balanced_accuracy_score

    return balanced_accuracy_score(labels, logits.argmax(-1))


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


METRICS = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy, "partial_auc": partial_auc}
