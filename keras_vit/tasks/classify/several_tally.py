"""Scores and figures of several labels for each image, and the thresholds of the labels."""

import functools

import numpy as np

from keras_vit.tasks.tally import Tally

SCORES = ("map", "macro_f1", "micro_f1")
HALF = 0.5  # threshold of a class without positives or without negatives, for which none can be chosen


class SeveralTally(Tally):
    """Mean average precision, and F1 at thresholds, over the known labels.

    It keeps every output: five bytes for each image and class.

    Args:
        names: Names of the classes, all different.
        thresholds: Least probability of a label, 0..1, one per class. `None` to choose for each class the threshold
            with the highest F1 on these images.
    """

    def __init__(self, names, thresholds=None):
        super().__init__()
        self.names = names
        self.given = thresholds

    def add(self, examples, outputs):
        """Counts a batch, and returns the mean probability of each image's true answers, `(batch,)`, 0..1.

        Args:
            examples: Dictionary with `"multilabels"`, `(batch, classes)`, 1, 0 or -1 for unknown.
            outputs: Logits, `(batch, classes)`.
        """
        labels, logits = np.asarray(examples["multilabels"], "int8"), np.asarray(outputs, "float32")
        self.kept.append((labels, logits))
        labeled, shares = labels >= 0, _shares(logits)
        right = np.where(labels == 1, shares, 1 - shares)
        return np.where(labeled, right, 0).sum(-1) / np.maximum(labeled.sum(-1), 1)  # 0 without known labels

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
        """The least probability of a label, `(classes,)`; read it after the last `add`."""
        return self._measures[:, 1] if self.given is None else np.array(self.given)

    @property
    def precisions(self):
        """The average precision, `(classes,)`, NaN for a class without positives; read it after the last `add`."""
        return self._measures[:, 0]

    @functools.cached_property
    def _measures(self):
        self.arrays()  # one array, from which each class is read
        return np.array([measures(*self._of(i)) for i in range(len(self.names))])

    @property
    def counts(self):
        """True positives, false positives and false negatives of each class, int64 `(3, classes)`."""
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
        """The number of images with each class, `(classes,)`."""
        return sum((labels == 1).sum(0) for labels, _ in self.kept)

    @property
    def known(self):
        """The number of images whose label is known, for each class, `(classes,)`."""
        return sum((labels >= 0).sum(0) for labels, _ in self.kept)

    def _of(self, i):
        """Returns whether each image with a known label has class i, and its probability, both `(images,)`."""
        labels, logits = (np.concatenate([part[k][:, i] for part in self.kept]) for k in (0, 1))
        labeled = labels >= 0
        return labels[labeled] == 1, _shares(logits[labeled])


def measures(true, shares):
    """Returns the average precision of one class, and the threshold with its highest F1.

    The average precision equals scikit-learn's `average_precision_score`; NaN without positives. The threshold is
    midway between the probabilities of two images; `HALF` without positives or without negatives.

    Args:
        true: Whether each image has the label, booleans, `(images,)`.
        shares: Probability of the label in each image, 0..1, `(images,)`.
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
    """Returns F1 from true positives, false positives and false negatives; 0 without true positives."""
    return 2 * right / np.maximum(2 * right + wrong + missed, 1)


def _shares(logits):
    from scipy.special import expit

    return expit(logits.astype("float64"))
