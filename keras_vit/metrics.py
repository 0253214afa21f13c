"""What a trained model is measured by, from its logits."""

import numpy as np

SENSITIVITY = 0.8  # above which the partial area counts


def measure(names, logits, labels):
    """Measures predictions.

    Args:
        names: Names of metrics: those of `METRICS`.
        logits: Array, `(images, classes)`.
        labels: Array, `(images,)`, class indices.

    Returns:
        A dictionary from names to numbers.

    Raises:
        ValueError: For a metric that these classes do not have.
    """
    return {name: float(METRICS[name](np.asarray(logits, "float64"), np.asarray(labels))) for name in names}


def accuracy(logits, labels):
    """Share of images whose likeliest class is right, top-1, 0 to 1."""
    return np.mean(logits.argmax(-1) == labels)


def balanced_accuracy(logits, labels):
    """Mean of the classes' own accuracies, 0 to 1."""
    from sklearn.metrics import balanced_accuracy_score

    return balanced_accuracy_score(labels, logits.argmax(-1))


def partial_auc(logits, labels):
    """Area under the ROC curve where sensitivity is above 80 %: 0 to 0.2, by chance 0.02.

    The metric of the ISIC 2024 challenge (skin lesions, few of them malignant); the second class, in the order of
    class names, is the one to be found.
    """
    from sklearn.metrics import roc_auc_score

    if logits.shape[-1] != 2 or set(labels.tolist()) != {0, 1}:
        raise ValueError(
            f"A partial area under the curve needs images of two classes. Received: {logits.shape[-1]} classes, of "
            f"which there are images of {len(set(labels.tolist()))}"
        )
    most = 1 - SENSITIVITY
    # scikit-learn's area is over false positives below `most`, scaled to 0.5 .. 1: with classes exchanged, and back.
    scaled = roc_auc_score(1 - labels, logits[:, 0] - logits[:, 1], max_fpr=most)
    least = most**2 / 2
    return least + (most - least) * (scaled - 0.5) / 0.5


METRICS = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy, "partial_auc": partial_auc}
