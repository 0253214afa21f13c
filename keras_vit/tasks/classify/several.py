"""Several labels for each image, or none: what differs from one label."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from keras_vit.models.metadata import stated_thresholds
from keras_vit.models.outputs import distinct
from keras_vit.tasks.classify.classify import Classify
from keras_vit.tasks.classify.several_loss import SeveralLoss, positive_weights
from keras_vit.tasks.classify.several_tally import HALF, SCORES, SeveralTally
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.shown import words
from keras_vit.utils import checks
from keras_vit.utils.warned import quoted, warn


def several_of(kind):
    """Returns the class of `Classify(multilabel=True)`, or of a subclass of `Several`; raises ValueError for others."""
    if kind is Classify:
        return Several
    if not issubclass(kind, Several):
        raise ValueError(
            f"A task of your own with several labels must be a subclass of Several. Received: {checks.shown(kind)}"
        )
    return kind


@dataclass(frozen=True, repr=False)
class Several(Classify):
    """Several labels for each image, or none: what `Classify(multilabel=True)` makes.

    The target `multilabels` is 1 where an image has a label, 0 where it does not, and -1 where nobody knows: this adds
    no loss and no score. `best.keras` follows the mean average precision.

    Args:
        loss: `"sigmoid"`, the default, or `"asymmetric"`; see `SeveralLoss`.
        label_smoothing: `s` trains 1 as `1 - s / 2` and 0 as `s / 2`.
        class_weights: Whether the rarer a label, the more its positives count; see `positive_weights`.
        distill: `"soft"`: each class by itself.
        thresholds: Probability from which on a label holds, one a class. By default those with the highest F1 of each
            class on the validation split are chosen, and stored with the model.
    """

    targets = ("multilabels",)
    best = ("val_map", "max")
    gives = "labels"
    measured = ("metrics",)

    loss: Literal["sigmoid", "asymmetric"] | None = None
    thresholds: tuple[float, ...] = ()

    def __post_init__(self):
        if self.loss == "softmax":
            raise ValueError("Several labels have a sigmoid each: a softmax has one label. Received: loss='softmax'")
        super().__post_init__()

    @property
    def columns(self):
        return {"classes": self.classes} if self.classes else {}

    def check(self, recipe):
        super().check(recipe)
        if not self.multilabel:
            raise ValueError("A recipe of several labels cannot be made one of one label. Received: multilabel=False")
        self._check_metrics()
        if self.distill == "hard":
            raise ValueError(
                "Several labels are distilled by distill='soft': they have no one most likely class. "
                "Received: distill='hard'"
            )
        check_thresholds(self.thresholds, len(self.classes) or recipe.model.get("num_classes"))

    def on(self, source, arguments=None):
        labels, names = source.targets["multilabels"], source.class_names
        if len(names) < 2:
            raise ValueError(f"A classifier must have two classes or more. Received: {', '.join(names) or 'none'}")
        if not (labels == 1).any():
            raise ValueError(f"One image or more must have a label. Received: {len(labels)} images without any")
        task = super().on(source, arguments)
        check_thresholds(self.thresholds, len(names))
        return task

    def settled(self, source):
        absent = absent_from(source, source.class_names)
        if absent:
            warn(f"No training image has {absent}: the model cannot learn them.")
        return super().settled(source)

    def of_model(self, model):
        return dataclasses.replace(self, thresholds=self.thresholds or tuple(stated_thresholds(model) or ()))

    def compiled(self, source):
        weights = positive_weights(source.targets["multilabels"]) if self.class_weights else None
        return {"loss": SeveralLoss(self.loss or "sigmoid", self.label_smoothing, weights), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        from keras_vit.data.augment.mixing import mixed_several

        return mixed_several(examples, augment, seed)

    def callbacks(self, run):
        absent = absent_from(run.validation, self.classes)
        if absent:
            warn(f"No validation image has {absent}: no part of val_map, and with the threshold {HALF}.")
        return [self._choosing(run)]

    def finish(self, run):
        if "thresholds" not in run.model.get_layer("rescale").metadata:  # resumed after the last epoch
            self._choosing(run).measured()

    def learner(self, model, teacher=None):
        model.get_layer("rescale").metadata.pop("thresholds", None)  # of the weights that it begins with
        return super().learner(model, teacher)

    def tally(self, keep=False):
        self._check_metrics()
        return SeveralTally(distinct(self.classes), self._thresholds)

    def probabilities(self, outputs):
        from scipy.special import expit

        return expit(np.asarray(outputs, "float64"))

    def answer(self, output):
        """Returns the probability of each class: first of those that reach their thresholds, the highest first."""
        shares, names = self.probabilities(output), distinct(self.classes)
        order = np.lexsort([-shares, shares < self._thresholds])
        return {names[i]: float(shares[i]) for i in order}

    def listed(self, output, top):
        holding = int((self.probabilities(output) >= self._thresholds).sum())
        return super().listed(output, max(top, holding))

    def heading(self, output):
        """Returns the labels that hold."""
        holding = int((self.probabilities(output) >= self._thresholds).sum())
        return words([*self.answer(output).items()][:holding]) or "no label"

    def marked(self, answer):
        least = self.thresholds_by_name()
        return {f"[{name}]" if value >= least[name] else name: value for name, value in answer.items()}

    def thresholds_by_name(self):
        """Returns the threshold of each class, by the names of `answer`."""
        return dict(zip(distinct(self.classes), self._thresholds.tolist()))

    def caption(self, output, example):
        names, labels = np.array(distinct(self.classes), object), np.asarray(example["multilabels"])
        found, known = self.probabilities(output) >= self._thresholds, labels >= 0
        true, said = (", ".join(names[chosen]) or "no label" for chosen in (labels == 1, found))
        return true if (found == (labels == 1))[known].all() else f"{true}; predicted {said}"

    def _check_metrics(self):
        if self.metrics != Classify.metrics:
            raise ValueError(
                f"Several labels have scores of their own, {', '.join(SCORES)}. Received: metrics={self.metrics!r}"
            )

    def _choosing(self, run):
        return Choosing(run, lambda: SeveralTally(distinct(self.classes), self.thresholds or None), SCORES)

    @property
    def _thresholds(self):
        return np.array(self.thresholds or [HALF] * len(self.classes))


def absent_from(source, names):
    """Returns the classes that no image of a source has, as words; `""` if there is none."""
    absent = [name for name, has in zip(names, (source.targets["multilabels"] == 1).any(0)) if not has]
    return quoted(absent)


def check_thresholds(values, count=None):
    """Raises ValueError unless there is no threshold, or one from 0 to 1 for each class, however many."""
    if len(values) not in (0, count or len(values)) or not all(0 <= value <= 1 for value in values):
        of = f", {count}" if count else ""
        raise ValueError(
            f"Classify.thresholds must be a number from 0 to 1 for each class{of}. "
            f"Received: {checks.shown(values):.200}"
        )


Several.__name__ = Classify.__name__  # in recipes' files, errors and code it is what users write


class Choosing(Measured):
    """Scores validation images, and writes the thresholds that are chosen on them into the model's metadata."""

    def measured(self):
        tally = super().measured()
        self.run.model.get_layer("rescale").metadata["thresholds"] = [float(t) for t in tally.thresholds]
        return tally
