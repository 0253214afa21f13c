"""Scores and figures of classification."""

import numpy as np

from keras_vit.models.outputs import distinct
from keras_vit.utils import metrics

CONFUSED = 10  # pairs of classes in the caption of the confusion matrix


class ClassTally:
    """Accuracy and the other metrics of a `Classify`, image by image.

    It keeps two numbers per class. Only `"partial_auc"` and figures need the outputs of each image.

    Args:
        task: A `Classify` with its classes.
        keep: Whether to keep what figures need.
    """

    def __init__(self, task, keep=False):
        self.task = task
        self.keep = keep
        self.right, self.total = np.zeros((2, len(task.classes)), "int64")
        self.ranked = []
        self.kept = []

    def add(self, examples, outputs):
        labels, outputs = examples["labels"], np.asarray(outputs, "float64")
        predictions, certainty = outputs.argmax(-1), self.task.probabilities(outputs)
        self.total += np.bincount(labels, minlength=len(self.total))
        self.right += np.bincount(labels[predictions == labels], minlength=len(self.total))
        if "partial_auc" in self.task.metrics:
            self.ranked.append((outputs, labels))
        if self.keep:
            self.kept.append((labels, certainty))
        own, highest = np.take_along_axis(certainty, labels[:, None], 1)[:, 0], certainty.max(-1)
        return np.where(predictions == labels, highest, own - highest)

    def result(self):
        from keras_vit.explain import answers

        found = {name: METRICS[name](self) for name in self.task.metrics}
        return found | ({"calibration_error": answers.binned(*self._arrays()).error} if self.keep else {})

    def figures(self):
        from keras_vit import plots
        from keras_vit.explain import answers
        from keras_vit.plots import canvas

        labels, certainty = self._arrays()
        names, predictions = distinct(self.task.classes), certainty.argmax(-1)
        short = [canvas.short(name) for name in names]
        calibration = answers.binned(labels, certainty)
        pairs = answers.confused(labels, predictions, CONFUSED)
        listed = ", ".join(f"{names[a]} → {names[b]} ({count})" for (a, b), count in pairs) or "none"
        return {
            "Confusion matrix: numbers are images, colors are shares of the true class. Most frequent confusions "
            f"(true class → predicted class, images): {listed}.": plots.plot_confusion(labels, predictions, short),
            "Accuracy by confidence. A perfectly calibrated model follows the dashed line; the expected calibration "
            f"error, {calibration.error:.2%}, is the mean distance from it.": plots.plot_calibration(calibration),
            "Precision and recall by class, lowest recall first.": plots.plot_per_class(
                answers.per_class(labels, certainty), short
            ),
        }

    def _arrays(self):
        return tuple(np.concatenate(parts) for parts in zip(*self.kept))


def _balanced(tally):
    present = tally.total > 0
    return float(np.mean(tally.right[present] / tally.total[present]))


METRICS = {
    "accuracy": lambda tally: float(tally.right.sum() / tally.total.sum()),
    "balanced_accuracy": _balanced,
    "partial_auc": lambda tally: float(metrics.partial_auc(*map(np.concatenate, zip(*tally.ranked)))),
}
