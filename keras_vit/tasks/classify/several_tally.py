"""Scores and figures of several labels for each image, and the thresholds from which on a label holds."""

import functools

import numpy as np

from keras_vit.tasks.tally import Tally

SCORES = ("map", "macro_f1", "micro_f1")
HALF = 0.5  # the threshold of a class without a positive, or without a negative, to choose another by


class SeveralTally(Tally):
    """Mean average precision, and F1 at thresholds, over the labels that are known.

    It keeps every output: five bytes for each image and class.

    Args:
        names: Of the classes, all different.
        thresholds: Probability from which on a label holds, one a class. `None` for those with the highest F1 of each
            class on these images.
    """

    def __init__(self, names, thresholds=None):
        super().__init__()
        self.names = names
        self.given = thresholds

    def add(self, examples, outputs):
        labels, logits = np.asarray(examples["multilabels"], "int8"), np.asarray(outputs, "float32")
        self.kept.append((labels, logits))
        labeled, shares = labels >= 0, _shares(logits)
        right = np.where(labels == 1, shares, 1 - shares)
        return np.where(labeled, right, 0).sum(-1) / np.maximum(labeled.sum(-1), 1)  # 0 where nothing is known

    def result(self):
        right, wrong, missed = self.counts
        present = right + missed > 0
        f1 = f1_of(right, wrong, missed)
        macro = f1[present].mean() if present.any() else np.nan
        micro = f1_of(right.sum(), wrong.sum(), missed.sum())
        mean = self.precisions[present].mean() if present.any() else np.nan
        each = {f"ap {name}": value for name, value in zip(self.names, self.precisions)}
        return {name: float(value) for name, value in {**dict(zip(SCORES, (mean, macro, micro))), **each}.items()}

    def figures(self):
        from keras_vit.plots import curves, labels

        present = np.flatnonzero(self.positives)
        absent = len(self.names) - len(present)
        out = f" Classes without a positive image, which have none: {absent}." if absent else ""
        names = [self.names[i] for i in present]
        bars = labels.plot_precisions(self.precisions[present], names, self.positives[present], self.known[present])
        drawn = curves.draw_curves(self.names, self._of, self.thresholds)
        figures = {f"Average precision by class, lowest first; the dot is what chance gives.{out}": bars}
        caption = "Each class, with a dot at its threshold: ten classes at most, those with the lowest area."
        return figures | ({caption: drawn} if drawn else {})

    @property
    def thresholds(self):
        """The probability from which on a label holds, one a class; after the last `add`."""
        return self._measures[:, 1] if self.given is None else np.array(self.given)

    @property
    def precisions(self):
        """The average precision of each class, NaN of one without a positive; after the last `add`."""
        return self._measures[:, 0]

    @functools.cached_property
    def _measures(self):
        self.arrays()  # a class is read from one array
        return np.array([measures(*self._of(i)) for i in range(len(self.names))])

    @property
    def counts(self):
        """Labels that hold and are found, that do not and are, and that do and are not: `(3, classes)`."""
        sums = np.zeros((3, len(self.names)), "int64")
        for labels, logits in self.kept:
            predicted = _shares(logits) >= self.thresholds
            sums += [
                (predictions & (labels == true)).sum(0)
                for predictions, true in ((predicted, 1), (predicted, 0), (~predicted, 1))
            ]
        return sums

    @property
    def positives(self):
        """The number of images that have each class."""
        return sum((labels == 1).sum(0) for labels, _ in self.kept)

    @property
    def known(self):
        """The number of images of which it is known whether they have each class."""
        return sum((labels >= 0).sum(0) for labels, _ in self.kept)

    def _of(self, i):
        """Returns whether the images of which it is known have class i, and their probabilities."""
        labels, logits = (np.concatenate([part[k][:, i] for part in self.kept]) for k in (0, 1))
        labeled = labels >= 0
        return labels[labeled] == 1, _shares(logits[labeled])


def measures(true, shares):
    """Returns the average precision of one class, and the threshold with its highest F1.

    The precision is that of scikit-learn's `average_precision_score`; NaN without a positive. The threshold is midway
    between the probabilities of two images; `HALF` without a positive, or without a negative.

    Args:
        true: Whether each image has the label, `(images,)`.
        shares: Its probability in each.
    """
    from sklearn.metrics import precision_recall_curve

    if not true.any():
        return np.nan, HALF
    precision, recall, edges = precision_recall_curve(true, shares)
    average = -np.sum(np.diff(recall) * precision[:-1])
    if true.all():
        return average, HALF
    f1 = precision * recall / np.maximum(precision + recall, 1e-12)
    best = edges[np.argmax(f1[:-1])]
    return average, (best + shares[shares < best].max(initial=0.0)) / 2


def f1_of(right, wrong, missed):
    """Returns the harmonic mean of precision and recall; 0 where nothing is right."""
    return 2 * right / np.maximum(2 * right + wrong + missed, 1)


def _shares(logits):
    from scipy.special import expit

    return expit(logits.astype("float64"))
