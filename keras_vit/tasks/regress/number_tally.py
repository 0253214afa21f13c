"""Scores and figures of regression."""

import numpy as np

from keras_vit.tasks.tally import Tally


class NumberTally(Tally):
    """Mean absolute error and root mean squared error of each number, in the units of the data, and R2.

    Args:
        names: Names of the numbers.
        deviation: Standard deviation of each number in the training data, the unit of errors in the score of an image;
            empty for 1.
        keep: Whether to keep the data that figures need.
    """

    def __init__(self, names, deviation=(), keep=False):
        super().__init__(keep)
        self.names = names
        self.deviation = np.array(deviation or [1.0] * len(names))
        self.count = 0
        self.shift = None  # subtracted from targets: sums of large squares would cancel
        self.sums = np.zeros((4, len(names)))  # of absolute and squared errors, of targets and their squares

    def add(self, examples, outputs):
        """Counts a batch, and returns minus the mean absolute error of each image, `(batch,)`, at most 0.

        Args:
            examples: Dictionary with `"numbers"`, `(batch, numbers)`, in the units of the data.
            outputs: Predictions, `(batch, numbers)`, in the same units.
        """
        truth = np.asarray(examples["numbers"], "float64")
        errors = np.asarray(outputs, "float64") - truth
        self.shift = truth[0] if self.shift is None else self.shift
        moved = truth - self.shift
        self.count += len(truth)
        self.sums += [np.abs(errors).sum(0), (errors**2).sum(0), moved.sum(0), (moved**2).sum(0)]
        if self.keep:
            self.kept.append((truth, truth + errors))
        return -np.abs(errors / self.deviation).mean(-1)

    def result(self):
        absolute, squared, sums, squares = self.sums
        spread = squares - sums**2 / max(self.count, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = np.where(spread > 0, 1 - squared / spread, np.nan)  # R2 is not defined for a constant target
        scores = {"mae": absolute / self.count, "rmse": np.sqrt(squared / self.count), "r2": r2}
        each = {name: value for score, values in scores.items() for name, value in zip(self._named(score), values)}
        return {name: float(value) for name, value in (self._overall(scores["mae"]) | each).items()}

    @property
    def scores(self):
        """The names of the scores that `result` returns."""
        each = [name for score in ("mae", "rmse", "r2") for name in self._named(score)]
        return tuple(dict.fromkeys(["mae", *each]))

    def _named(self, score):
        return [score] if len(self.names) == 1 else [f"{score}_{name}" for name in self.names]

    def _overall(self, absolute):
        """Returns the mean absolute error of several numbers in standard deviations; `{}` for one number."""
        return {"mae": np.mean(absolute / self.deviation)} if len(self.names) > 1 else {}

    def figures(self):
        from keras_vit.plots.numbers import plot_numbers

        truth, predictions = self.arrays()
        caption = "Prediction against truth, one point an image; a perfect model's are on the line."
        return {caption: plot_numbers(truth, predictions, self.names)}
