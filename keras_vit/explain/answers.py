"""Metrics of predictions: per class, calibration, and the worst mistakes."""

import collections
from typing import NamedTuple

import numpy as np

from keras_vit.utils import checks


class Calibration(NamedTuple):
    """The result of `calibration`. A bin without images holds NaN."""

    confidence: np.ndarray  # (bins,), mean probability of the predicted classes in a bin
    accuracy: np.ndarray  # (bins,), share of correct predictions in a bin
    count: np.ndarray  # (bins,), number of images
    error: float  # expected calibration error, 0 to 1


def per_class(labels, probabilities) -> dict[str, np.ndarray]:
    """Computes precision and recall of each class.

    Args:
        labels: Class indices, `(batch,)`.
        probabilities: Array of probabilities or logits, `(batch, classes)`.

    Returns:
        A dictionary of arrays, `(classes,)`: `"precision"` and `"recall"`, 0 to 1, and `"support"`, the number of
        images of the class. The recall of a class without images is NaN, and so is the precision of a class that is
        never predicted.

    Raises:
        ValueError: If the arrays do not match.
    """
    labels, probabilities = _pair(labels, probabilities)
    return measured(labels, probabilities.argmax(-1), probabilities.shape[1])


def measured(labels, predictions, classes):
    """Computes `per_class` from predicted class indices, `(batch,)`, and the number of classes."""
    from sklearn.metrics import precision_recall_fscore_support

    precision, recall, *_ = precision_recall_fscore_support(
        labels, predictions, labels=np.arange(classes), zero_division=np.nan
    )
    return {"precision": precision, "recall": recall, "support": np.bincount(labels, minlength=classes)}


def confusion(labels, answers, classes):
    """Computes the confusion matrix.

    Args:
        labels: Class indices, `(batch,)`.
        answers: Predicted class indices, `(batch,)`.
        classes: Number of classes.

    Returns:
        Two arrays, `(classes, classes)`, with a row for each label and a column for each prediction: the number of
        images, and their share of the row, 0 to 1.
    """
    from sklearn.metrics import confusion_matrix

    images = confusion_matrix(labels, answers, labels=range(classes))
    return images, images / np.maximum(images.sum(1, keepdims=True), 1)


def confused(labels, answers, most=10):
    """Returns the most frequent confusions: pairs of a label and a prediction, and their number of images."""
    pairs = collections.Counter(zip(np.ravel(labels).tolist(), np.ravel(answers).tolist()))
    return [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]][:most]


def calibration(labels, probabilities, bins: int = 15) -> Calibration:
    """Computes the expected calibration error and its reliability diagram: confidence against accuracy.

    Guo et al. 2017 (arXiv:1706.04599), section 2. Predictions are sorted into bins of equal width by their probability.
    The expected calibration error is the mean gap between a bin's accuracy and confidence, weighted by its images.

    Args:
        labels: Class indices, `(batch,)`.
        probabilities: Array, `(batch, classes)`, each row sums to one; or `(batch, 1)`, of the second of two classes.
        bins: Number of bins.

    Returns:
        A `Calibration`.

    Raises:
        ValueError: If the arrays do not match, or the values are not probabilities.
    """
    if np.ndim(probabilities) == 2 and np.shape(probabilities)[1] == 1:
        probabilities = np.concatenate([1 - np.asarray(probabilities), probabilities], 1)
    labels, probabilities = _pair(labels, probabilities)
    checks.positive(bins=bins)
    if probabilities.min() < 0 or not np.allclose(probabilities.sum(-1), 1, atol=1e-3):
        sums = probabilities.sum(-1)
        raise ValueError(
            "`probabilities` must be at least 0 and sum to one for each image: keras.ops.softmax(logits). "
            f"Received: values from {probabilities.min():g}, sums from {sums.min():g} to {sums.max():g}"
        )
    return binned(labels, probabilities, bins)


def binned(labels, probabilities, bins=15):
    """Computes `calibration`, also of probabilities that do not sum to one: those of one sigmoid for each class."""
    return reliability(probabilities.max(-1), probabilities.argmax(-1) == labels, bins)


def reliability(sure, right, bins=15):
    """Computes `calibration` from the probability of each predicted class, and whether it is right, `(batch,)`."""
    places = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)  # (0, 1/bins], (1/bins, 2/bins] ...
    count = np.bincount(places, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence, accuracy = (np.bincount(places, weights=w, minlength=bins) / count for w in (sure, right))
    error = np.nansum(count * np.abs(accuracy - confidence)) / len(right)
    return Calibration(confidence, accuracy, count, float(error))


def worst(labels, probabilities, count: int = 16) -> np.ndarray:
    """Finds the worst mistakes: where the predicted class is furthest above the label.

    Args:
        labels: Class indices, `(batch,)`.
        probabilities: Array of probabilities or logits, `(batch, classes)`.
        count: Largest number of mistakes to return.

    Returns:
        Indices of images, `(mistakes,)`, the worst first; fewer than `count` if there are fewer mistakes.

    Raises:
        ValueError: If the arrays do not match.
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
            "`probabilities` must be finite numbers of shape (batch, classes). "
            f"Received: shape={probabilities.shape}, {finite}"
        )
    if probabilities.shape[1] == 1:  # logits and probabilities are not told apart
        raise ValueError(
            "`probabilities` must have a column for each class. For one logit z of two classes pass "
            "np.hstack([0 * z, z]), for its probability p np.hstack([1 - p, p]). Received: one column"
        )
    return checks.class_indices(labels, probabilities.shape[1], len(probabilities)), probabilities
