"""Scores and figures of classification."""

import numpy as np

from keras_vit.models.outputs import distinct
from keras_vit.tasks.classify import keras_metrics
from keras_vit.tasks.classify.scores import SCORES, TOP, Counts
from keras_vit.tasks.tally import Tally

COLUMNS = ("loss", "accuracy", "calibration_error")  # scores that a run has without a metric of Keras
CONFUSED = 10  # pairs of classes in the caption of the confusion matrix
MANY = 1000  # above this number of classes, figures keep probabilities in float32


def check(metrics, loss, classes=None):
    """Raises ValueError for an unknown metric, or a metric that a loss or a number of classes does not allow.

    Args:
        metrics: Names of metrics, a tuple of texts.
        loss: `"softmax"`, `"sigmoid"` or `None`.
        classes: Number of classes; `None` if it is not known yet.
    """
    if not metrics or len(set(metrics)) < len(metrics):
        raise ValueError(f"Classify.metrics must be one metric or more, all different. Received: {metrics!r}")
    for name in metrics:
        if name not in SCORES and not keras_metrics.is_known(name):
            raise ValueError(
                f"A metric must be one of {', '.join(SCORES)}, of Keras, such as 'keras.metrics.F1Score', or your own "
                f"by its registered name, for which pass your recipe's file. Received: {name!r}"
            )
    if classes and classes != 2 and "partial_auc" in metrics:
        raise ValueError(f"The metric 'partial_auc' is for two classes. Received: {classes} classes")
    if classes and classes <= TOP and "top_5_accuracy" in metrics:
        raise ValueError(f"The metric 'top_5_accuracy' is for six classes or more. Received: {classes} classes")
    if loss == "sigmoid" and "log_loss" in metrics:
        raise ValueError(
            "The metric 'log_loss' is of probabilities that sum to one. Received: loss='sigmoid', whose do not"
        )


class ClassTally(Tally):
    """Accuracy and the other metrics of a `Classify`, from labels, `(batch,)`, and logits, `(batch, classes)`.

    It keeps a few numbers per class. Only `"auc"`, `"partial_auc"` and figures need the outputs of each image.

    Args:
        task: A `Classify` with its classes.
        keep: Whether to keep the data that figures need.
    """

    def __init__(self, task, keep=False):
        super().__init__(keep)
        self.task = task
        check(task.metrics, task.loss, len(task.classes))
        self.counts = Counts(len(task.classes), task.metrics, task.loss)
        names = [name for name in task.metrics if name not in SCORES]
        self.theirs = {name: keras_metrics.KerasScore(name, distinct(task.classes)) for name in names}
        columns = [name for score in self.theirs.values() for name in score.names if name in COLUMNS]
        if columns:
            raise ValueError(
                f"A metric of Keras, or your own, must have another name than {', '.join(COLUMNS)}: give it a `name`. "
                f"Received: {', '.join(columns)}"
            )
        if len(set(self.scores)) < len(self.scores):
            raise ValueError(f"Metrics must differ in name: give one a `name`. Received: {', '.join(self.scores)}")

    def add(self, examples, outputs):
        """Counts a batch, and returns a score for each image, `(batch,)`, from -1 to 1, above 0 if it is right.

        Args:
            examples: Dictionary with `"labels"`, integers, `(batch,)`.
            outputs: Logits, `(batch, classes)`.
        """
        labels, outputs = examples["labels"], np.asarray(outputs, "float64")
        predictions, certainty = outputs.argmax(-1), self.task.probabilities(outputs)
        self.counts.add(labels, outputs, predictions)
        for score in self.theirs.values():
            score.add(labels, certainty)
        own, highest = np.take_along_axis(certainty, labels[:, None], 1)[:, 0], certainty.max(-1)
        if self.keep:
            shares = certainty if len(self.task.classes) <= MANY else certainty.astype("float32")
            self.kept.append((labels, predictions, highest, shares))  # shares: (batch, classes)
        return np.where(predictions == labels, highest, own - highest)

    def result(self):
        scores = {}
        for name in self.task.metrics:
            scores |= self.theirs[name].result() if name in self.theirs else {name: float(SCORES[name](self.counts))}
        return scores | ({"calibration_error": self._calibration.error} if self.keep else {})

    @property
    def scores(self):
        """The names of the scores that `result` returns."""
        names = [self.theirs[name].names if name in self.theirs else (name,) for name in self.task.metrics]
        return tuple(name for some in names for name in some)

    def figures(self):
        from keras_vit import plots
        from keras_vit.explain import answers
        from keras_vit.plots import lettering
        from keras_vit.plots.curves import draw_curves
        from keras_vit.plots.predictions import CELLS

        labels, predictions, _, certainty = self.arrays()
        names, calibration = distinct(self.task.classes), self._calibration
        short = [lettering.short(name) for name in names]
        pairs = answers.confused(labels, predictions, CONFUSED)
        listed = ", ".join(f"{names[a]} → {names[b]} ({count})" for (a, b), count in pairs) or "none"
        first = int(len(names) == 2)  # of two classes, both have the same curves
        curves = draw_curves(names[first:], lambda i: (labels == first + i, certainty[:, first + i]))
        matrix = plots.plot_confusion(labels, predictions, short)
        numbers = "numbers are images, " if matrix.axes[0].texts else ""
        cells = f"Confusion matrix: {numbers}colors are shares of the true class. "
        figures = {
            f"{cells if len(names) <= CELLS else ''}Most frequent confusions "
            f"(true class → predicted class, images): {listed}.": matrix,
            "Accuracy by confidence. A perfectly calibrated model follows the dashed line; the expected calibration "
            f"error, {calibration.error:.2%}, is the mean distance from it.": plots.plot_calibration(calibration),
            "Precision and recall by class, lowest recall first.": plots.plot_per_class(
                answers.measured(labels, predictions, len(names)), short
            ),
        }
        caption = "Each class against the others, for all thresholds: ten classes at most, those with the lowest area."
        return figures | ({caption: curves} if curves else {})

    @property
    def _calibration(self):
        from keras_vit.explain import answers

        labels, predictions, highest, _ = self.arrays()
        return answers.reliability(highest, predictions == labels)
