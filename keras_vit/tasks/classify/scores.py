"""Scores of classification by name, computed from counts whose size does not grow with the images.

Names and values are the same as in scikit-learn. There is no confusion matrix: kappa and Matthews's coefficient need
only its diagonal and margins, so that thousands of classes take little memory.
"""

import numpy as np
from scipy.special import log_softmax, logsumexp

from keras_vit.utils import metrics

TOP = 5


class Counts:
    """Counts from which the scores are computed.

    Args:
        classes: Number of classes.
        names: Names of the scores that will be computed.
        loss: Loss of the task, `"softmax"` or `"sigmoid"`.
    """

    def __init__(self, classes, names, loss="softmax"):
        self.names = names
        self.loss = loss
        self.right, self.total, self.predicted = np.zeros((3, classes), "int64")  # images of each class
        self.top = 0  # images whose class is among the five largest outputs
        self.surprise = 0.0  # sum of -log(probability of the true class)
        self.distance = 0.0  # sum of the squared differences of indices
        self.ranked = []  # per batch: labels and log odds

    def add(self, labels, outputs, predictions):
        """Counts a batch: labels and predictions, integers, `(batch,)`, and logits, float64 `(batch, classes)`."""
        self.total += np.bincount(labels, minlength=len(self.total))
        self.predicted += np.bincount(predictions, minlength=len(self.total))
        self.right += np.bincount(labels[predictions == labels], minlength=len(self.total))
        self.distance += float(((labels - predictions) ** 2).sum())
        if "top_5_accuracy" in self.names:
            first = np.argsort(-outputs, -1, kind="stable")[:, :TOP]
            self.top += int((first == labels[:, None]).sum())
        if "log_loss" in self.names:
            self.surprise -= float(np.take_along_axis(log_softmax(outputs, -1), labels[:, None], 1).sum())
        if "auc" in self.names or "partial_auc" in self.names:
            self.ranked.append((labels, log_odds(outputs, self.loss)))

    @property
    def images(self):
        """Number of images."""
        return int(self.total.sum())

    def arrays(self):
        """Returns the labels, `(images,)`, and log odds, `(images, classes)`, of all images."""
        return tuple(np.concatenate(parts) for parts in zip(*self.ranked))


def _each(counts, over):
    """Returns the right images of each class divided by `over`, 0 where that is 0, and which classes occur."""
    right = counts.right.astype("float64")
    return np.divide(right, over, out=np.zeros_like(right), where=over > 0), counts.total + counts.predicted > 0


def _macro(over):
    def mean(counts):
        values, occurs = _each(counts, over(counts))
        return values[occurs].mean()

    return mean


def _balanced(counts):
    present = counts.total > 0
    return np.mean(counts.right[present] / counts.total[present])


def _weighted_f1(counts):
    values, _ = _each(counts, _f1(counts))
    return values @ counts.total / counts.images


def _f1(counts):
    return (counts.total + counts.predicted) / 2


def _kappa(counts):
    chance = counts.total @ (counts.predicted / counts.images)
    return _ratio(counts.right.sum() - chance, counts.images - chance)


def _quadratic_kappa(counts):
    places, (true, predicted) = np.arange(len(counts.total)), (counts.total, counts.predicted)
    by_chance = true @ places**2 + predicted @ places**2 - 2 * (true @ places) * (predicted @ places / counts.images)
    return 1 - _ratio(counts.distance, by_chance)


def _matthews(counts):
    images, true, predicted = float(counts.images), counts.total.astype("float64"), counts.predicted.astype("float64")
    both = counts.right.sum() * images - true @ predicted
    spread = np.sqrt(images**2 - true @ true) * np.sqrt(images**2 - predicted @ predicted)
    return both / spread if spread else 0.0


def _ratio(part, whole):
    """Returns a quotient, NaN where all labels and predictions are of one class, for which kappa is not defined."""
    return part / whole if whole else np.nan


def _auc(counts):
    from sklearn.metrics import roc_auc_score

    labels, outputs = counts.arrays()
    if outputs.shape[1] == 2:
        return roc_auc_score(labels, outputs[:, 1]) if len(set(labels.tolist())) == 2 else np.nan
    present = [k for k in np.flatnonzero(counts.total) if counts.total[k] < counts.images]
    return np.mean([roc_auc_score(labels == k, outputs[:, k]) for k in present]) if present else np.nan


def _partial_auc(counts):
    labels, outputs = counts.arrays()
    return metrics.partial_auc(outputs, labels) if len(set(labels.tolist())) == 2 else np.nan


SCORES = {
    "accuracy": lambda counts: counts.right.sum() / counts.images,
    "top_5_accuracy": lambda counts: counts.top / counts.images,
    "balanced_accuracy": _balanced,
    "precision": _macro(lambda counts: counts.predicted),
    "recall": _macro(lambda counts: counts.total),
    "f1": _macro(_f1),
    "weighted_f1": _weighted_f1,
    "kappa": _kappa,
    "quadratic_kappa": _quadratic_kappa,
    "matthews": _matthews,
    "log_loss": lambda counts: counts.surprise / counts.images,
    "auc": _auc,
    "partial_auc": _partial_auc,
}


def log_odds(outputs, loss):
    """Returns log(p / (1 - p)) of each class, by which images are ranked: probabilities near 1 would round to ties.

    Args:
        outputs: Logits, float64 `(batch, classes)`.
        loss: `"softmax"` or `"sigmoid"`.

    Returns:
        Array like `outputs`; float32 for three classes or more.
    """
    if outputs.shape[1] == 2:
        return outputs if loss == "sigmoid" else outputs - outputs[:, ::-1]
    if loss == "sigmoid":
        return outputs.astype("float32")
    rows, first = np.arange(len(outputs)), outputs.argmax(-1)
    others = outputs.copy()
    others[rows, first] = -np.inf
    logs = log_softmax(outputs, -1)
    logs[rows, first] = -np.inf
    odds = logs - np.log1p(-np.exp(logs))  # these are 1/2 at most
    odds[rows, first] = outputs[rows, first] - logsumexp(others, -1)
    return odds.astype("float32")
