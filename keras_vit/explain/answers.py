"""Where a model is right, how sure it is, and what it gets wrong."""

from typing import NamedTuple

import numpy as np

from keras_vit import checks


class Calibration(NamedTuple):
    """What `calibration` returns. A bin without images holds NaN."""

    confidence: np.ndarray  # (bins,), mean probability of the answers in a bin
    accuracy: np.ndarray  # (bins,), share of them that is right
    count: np.ndarray  # (bins,), images
    error: float  # expected calibration error, 0 to 1


def per_class(labels, probabilities):
    """Measures each class by itself.

    Args:
        labels: Class indices, `(batch,)`.
        probabilities: Array, `(batch, classes)`; logits do as well.

    Returns:
        A dictionary of arrays, `(classes,)`: `"precision"` and `"recall"`, 0 to 1, and `"support"`, the number of
        images of the class. Without an image, or an answer, of a class its recall, or precision, is NaN.

    Raises:
        ValueError: For arrays that do not fit each other.
    """
    from sklearn.metrics import precision_recall_fscore_support

    labels, probabilities = _pair(labels, probabilities)
    classes = np.arange(probabilities.shape[1])
    precision, recall, *_ = precision_recall_fscore_support(
        labels, probabilities.argmax(-1), labels=classes, zero_division=np.nan
    )
    return {"precision": precision, "recall": recall, "support": np.bincount(labels, minlength=len(classes))}


def confusion(labels, answers, classes):
    """Counts how often each class is answered for each.

    Args:
        labels: Class indices, `(batch,)`.
        answers: Class indices, `(batch,)`.
        classes: Number of classes.

    Returns:
        Two arrays, `(classes, classes)`, truth by answer: images, and their shares of those of the true class, 0 to 1.
    """
    from sklearn.metrics import confusion_matrix

    images = confusion_matrix(labels, answers, labels=range(classes))
    return images, images / np.maximum(images.sum(1, keepdims=True), 1)


def calibration(labels, probabilities, bins=15):
    """Compares how sure a model is with how often it is right.

    Guo et al. 2017 (arXiv:1706.04599), section 2: answers are put into bins of equal width by their probability, and
    the expected calibration error is the mean gap between a bin's accuracy and confidence, weighted by its images.

    Args:
        labels: Class indices, `(batch,)`.
        probabilities: Array, `(batch, classes)`; each row sums to one.
        bins: Number of bins.

    Returns:
        A `Calibration`.

    Raises:
        ValueError: For arrays that do not fit each other, or are no probabilities.
    """
    labels, probabilities = _pair(labels, probabilities)
    checks.positive(bins=bins)
    if probabilities.min() < 0 or not np.allclose(probabilities.sum(-1), 1, atol=1e-3):
        sums = probabilities.sum(-1)
        raise ValueError(
            "`probabilities` are from 0, and each image's sum to one: keras.ops.softmax(logits). "
            f"Received: values from {probabilities.min():g}, sums from {sums.min():g} to {sums.max():g}"
        )
    sure, right = probabilities.max(-1), probabilities.argmax(-1) == labels
    places = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)  # (0, 1/bins], (1/bins, 2/bins] ...
    count = np.bincount(places, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence, accuracy = (np.bincount(places, weights=w, minlength=bins) / count for w in (sure, right))
    error = np.nansum(count * np.abs(accuracy - confidence)) / len(labels)
    return Calibration(confidence, accuracy, count, float(error))


def worst(labels, probabilities, count=16):
    """Finds the mistakes in which the model put another class furthest above the true one.

    Args:
        labels: Class indices, `(batch,)`.
        probabilities: Array, `(batch, classes)`; logits do as well.
        count: How many at most.

    Returns:
        Indices of images, `(found,)`, the worst first; less than `count`, or none, if there are no more mistakes.

    Raises:
        ValueError: For arrays that do not fit each other.
    """
    labels, probabilities = _pair(labels, probabilities)
    checks.positive(count=count)
    gap = probabilities.max(-1) - probabilities[np.arange(len(labels)), labels]
    mistakes = np.flatnonzero(probabilities.argmax(-1) != labels)
    return mistakes[np.argsort(-gap[mistakes], kind="stable")][:count]


def _pair(labels, probabilities):
    probabilities = np.asarray(probabilities, "float64")
    if probabilities.ndim != 2 or not len(probabilities) or not np.isfinite(probabilities).all():
        finite = "finite" if np.isfinite(probabilities).all() else "not finite"
        raise ValueError(
            "`probabilities` are finite numbers of the shape (batch, classes). "
            f"Received: shape={probabilities.shape}, {finite}"
        )
    return checks.class_indices(labels, probabilities.shape[1], len(probabilities)), probabilities
