"""The rules of several labels for each image, or none."""

import numpy as np

from keras_vit.models.metadata import stated_thresholds
from keras_vit.models.outputs import distinct
from keras_vit.tasks.classify.labels import Labels
from keras_vit.tasks.classify.several_loss import SeveralLoss, positive_weights
from keras_vit.tasks.classify.several_tally import HALF, SCORES, SeveralTally
from keras_vit.tasks.measured import Measured
from keras_vit.utils import checks
from keras_vit.utils.warned import quoted, warn


class SeveralLabels(Labels):
    """The rules of several labels for each image, or none, for `Classify(multilabel=True)`.

    The target `multilabels` is 1 if an image has a label, 0 if it does not, and -1 if that is unknown. Unknown labels
    count in neither loss nor scores. `best.keras` follows the mean average precision. Options of `Classify`:

    - `loss`: `"sigmoid"`, the default, or `"asymmetric"`; see `SeveralLoss`;
    - `label_smoothing`: `s` replaces 1 by `1 - s / 2` and 0 by `s / 2`;
    - `class_weights`: the rarer a label, the more its positives count; see `positive_weights`;
    - `distill`: `"soft"`, for each class separately;
    - `thresholds`: least probability of a label, one per class. By default, the threshold with the highest F1 on the
      validation split is chosen for each class, and stored with the model.
    """

    targets = ("multilabels",)
    best = ("val_map", "max")
    gives = "labels"
    losses = ("sigmoid", "asymmetric")
    said = "Several labels have a sigmoid each: a softmax has one label."

    @property
    def columns(self):
        return {"classes": self.task.classes} if self.task.classes else {}

    def check(self, recipe):
        self._check_metrics()
        if self.task.distill == "hard":
            raise ValueError(
                "Several labels are distilled by distill='soft': they have no one most likely class. "
                "Received: distill='hard'"
            )
        check_thresholds(self.task.thresholds, len(self.task.classes) or recipe.model.get("num_classes"))

    def check_data(self, source):
        """Raises ValueError unless a `Source` has two classes or more, and a label, in `"multilabels"`."""
        labels, names = source.targets["multilabels"], source.class_names
        if len(names) < 2:
            raise ValueError(f"A classifier must have two classes or more. Received: {', '.join(names) or 'none'}")
        if not (labels == 1).any():
            raise ValueError(f"One image or more must have a label. Received: {len(labels)} images without any")
        check_thresholds(self.task.thresholds, len(names))

    def warn_of(self, source):
        """Warns of classes that no training image has."""
        if absent := absent_from(source, source.class_names):
            warn(f"No training image has {absent}: the model cannot learn them.")

    def of_model(self, model):
        return {"thresholds": self.task.thresholds or tuple(stated_thresholds(model) or ())}

    def forget(self, model):
        """Removes the thresholds from the metadata of a model with loaded weights."""
        model.get_layer("rescale").metadata.pop("thresholds", None)

    def compiled(self, source):
        weights = positive_weights(source.targets["multilabels"]) if self.task.class_weights else None
        loss = SeveralLoss(self.task.loss or "sigmoid", self.task.label_smoothing, weights)
        return {"loss": loss, "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns float32 images, and float32 labels, `(batch, classes)`, 0..1, or -1 if unknown; MixUp blends both."""
        from keras_vit.data.augment.mixing import mixed_several

        return mixed_several(examples, augment, seed)

    def callbacks(self, run):
        if absent := absent_from(run.validation, self.task.classes):
            warn(f"No validation image has {absent}: no part of val_map, and with the threshold {HALF}.")
        return [self._choosing(run)]

    def finish(self, run):
        if "thresholds" not in run.model.get_layer("rescale").metadata:  # resumed after the last epoch: not chosen yet
            self._choosing(run).measured()

    def tally(self, keep=False):
        self._check_metrics()
        return SeveralTally(distinct(self.task.classes), self._thresholds)

    def probabilities(self, outputs):
        """Returns the sigmoid of logits, float64, 0..1, in the same shape, `(..., classes)`."""
        from scipy.special import expit

        return expit(np.asarray(outputs, "float64"))

    def order(self, shares):
        """Returns class indices, `(classes,)`, of labels that hold first, from probabilities, `(classes,)`."""
        return np.lexsort([-shares, shares < self._thresholds])

    def thresholds_by_name(self):
        """Returns the threshold of each class, 0..1, by name."""
        return dict(zip(distinct(self.task.classes), self._thresholds.tolist()))

    def caption(self, output, example):
        """Returns the true labels, and the predicted ones if they differ, from logits, `(classes,)`, and targets."""
        names, labels = np.array(distinct(self.task.classes), object), np.asarray(example["multilabels"])
        predicted, labeled = self.probabilities(output) >= self._thresholds, labels >= 0
        true, prediction = (", ".join(names[chosen]) or "no label" for chosen in (labels == 1, predicted))
        return true if (predicted == (labels == 1))[labeled].all() else f"{true}; predicted {prediction}"

    def _check_metrics(self):
        if self.task.metrics != ("accuracy",):  # the default
            raise ValueError(
                f"Several labels have scores of their own, {', '.join(SCORES)}. Received: metrics={self.task.metrics!r}"
            )

    def _choosing(self, run):
        return Choosing(run, lambda: SeveralTally(distinct(self.task.classes), self.task.thresholds or None), SCORES)

    @property
    def _thresholds(self):
        return np.array(self.task.thresholds or [HALF] * len(self.task.classes))


def absent_from(source, names):
    """Returns the classes that no image of a `Source` has, as text; `""` if there is none."""
    absent = [name for name, has in zip(names, (source.targets["multilabels"] == 1).any(0)) if not has]
    return quoted(absent)


def check_thresholds(values, count=None):
    """Raises ValueError unless there are no thresholds, or one for each class, 0..1; `count` may be unknown, `None`."""
    if len(values) not in (0, count or len(values)) or not all(0 <= value <= 1 for value in values):
        of = f", {count}" if count else ""
        raise ValueError(
            f"Classify.thresholds must be a number from 0 to 1 for each class{of}. "
            f"Received: {checks.shown(values):.200}"
        )


class Choosing(Measured):
    """Scores validation images, chooses thresholds, and writes these into the model's metadata."""

    def measured(self):
        """Returns the `SeveralTally` of the validation images, and stores its thresholds."""
        tally = super().measured()
        self.run.model.get_layer("rescale").metadata["thresholds"] = [float(t) for t in tally.thresholds]
        return tally
