"""Classification: one label for each image."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import keras
import numpy as np

from keras_vit import metrics, plots
from keras_vit.backbone import HEADS
from keras_vit.checked import number
from keras_vit.explain import answers
from keras_vit.plots import canvas
from keras_vit.pretrained import vit
from keras_vit.task import Task
from keras_vit.tasks.distillation import Distiller, load_teacher
from keras_vit.tasks.losses import ClassLoss

CONFUSED = 10  # pairs of classes in the caption of the confusion matrix


@dataclass(frozen=True, repr=False)
class Classify(Task):
    """One label for each image: loss, class weights, distillation and metrics.

    The number of classes is `num_classes` of the recipe's model.
    """

    targets = ("labels",)
    best = ("val_accuracy", "max")

    loss: Literal["softmax", "sigmoid"] = "softmax"
    head_bias: float | None = None  # initial bias of the head; -log(classes) suits a sigmoid
    label_smoothing: float = number(0.0, below=1)
    class_weights: bool = False  # weight the loss of a class inversely to its frequency
    distill: Literal["soft", "hard"] | None = None  # see `keras_vit.Distiller`
    teacher: str | None = None  # checkpoint, published name or `.keras` file
    distill_weight: float = number(0.5, most=1)  # share of the teacher in the loss
    temperature: float = number(3.0, low=1e-3)  # of soft distillation
    metrics: tuple[Literal["accuracy", "balanced_accuracy", "partial_auc"], ...] = ("accuracy",)  # of `evaluate`

    def on(self, source, arguments=None):
        names = source.class_names
        if arguments is not None and len(names) != arguments["num_classes"]:
            raise ValueError(
                f"The model must have as many classes as the data, {len(names)}. "
                f"Received: {arguments['num_classes']} classes"
            )
        source.check_labels()
        return dataclasses.replace(self, classes=tuple(names))

    def names(self, arguments):
        return self.classes or tuple(map(str, range(arguments["num_classes"] or 0)))

    def model(self, **arguments):
        model = vit(**arguments)
        if len(model.output_shape) != 2:
            raise ValueError(
                f"A classifier must return one vector of logits per image. Received: output shape {model.output_shape}"
            )
        return model

    def teacher_for(self, model, given=None):
        return load_teacher(self, model, given)

    def learner(self, model, teacher=None):
        if self.head_bias is not None:
            for layer in model.layers:
                if layer.name in HEADS:
                    layer.bias.assign(keras.ops.full(layer.bias.shape, self.head_bias))
        if self.distill is None:
            return model
        return Distiller(model, teacher, self.distill, self.distill_weight, self.temperature)

    def compiled(self, source):
        weights = class_weights(source) if self.class_weights else None
        return {"loss": ClassLoss(self.loss, self.label_smoothing, weights), "weighted_metrics": ["accuracy"]}

    def batch(self, examples, augment, seed):
        from keras_vit.data.mixing import mixed

        return mixed(examples, len(self.classes), augment, seed)

    def tally(self, keep=False):
        return ClassTally(self, keep)

    def answer(self, output):
        certainty = softmax(np.asarray(output, "float64"))
        return {self.classes[i]: float(certainty[i]) for i in np.argsort(-certainty, kind="stable")}

    def caption(self, output, example):
        (name, certainty), *_ = self.answer(output).items()
        label = self.classes[example["labels"]]
        return f"{label}{'' if label == name else f', predicted {name}'} ({certainty:.0%})"


def class_weights(source):
    """Returns a weight per class, inverse to its share of the images; the mean over images is 1."""
    counts = np.bincount(source.labels, minlength=len(source.class_names))
    return len(source) / (len(counts) * np.maximum(counts, 1))


class ClassTally:
    """Accuracy and the other metrics of a `Classify`, image by image.

    It keeps two numbers per class. Only `"partial_auc"` and figures need the outputs of each image.

    Args:
        task: A `Classify` with its classes.
        keep: Whether to keep what figures need.
    """

    def __init__(self, task, keep=False):
        self.task, self.keep = task, keep
        self.right, self.total = np.zeros((2, len(task.classes)), "int64")
        self.ranked, self.kept = [], []

    def add(self, examples, outputs):
        labels, outputs = examples["labels"], np.asarray(outputs, "float64")
        predictions, certainty = outputs.argmax(-1), softmax(outputs)
        self.total += np.bincount(labels, minlength=len(self.total))
        self.right += np.bincount(labels[predictions == labels], minlength=len(self.total))
        if "partial_auc" in self.task.metrics:
            self.ranked.append((outputs, labels))
        if self.keep:
            self.kept.append((labels, certainty))
        own, highest = np.take_along_axis(certainty, labels[:, None], 1)[:, 0], certainty.max(-1)
        return np.where(predictions == labels, highest, own - highest)

    def result(self):
        found = {name: METRICS[name](self) for name in self.task.metrics}
        return found | ({"calibration_error": answers.calibration(*self._arrays()).error} if self.keep else {})

    def figures(self):
        labels, certainty = self._arrays()
        names, predictions = self.task.classes, certainty.argmax(-1)
        short = [canvas.short(name) for name in names]
        calibration = answers.calibration(labels, certainty)
        pairs = answers.confused(labels, predictions, CONFUSED)
        listed = ", ".join(f"{names[a]} → {names[b]} ({count})" for (a, b), count in pairs) or "none"
        return {
            "Confusion matrix: numbers are images, colours are shares of the true class. Most frequent confusions "
            f"(true class → predicted class, images): {listed}.": plots.plot_confusion(labels, predictions, short),
            "Accuracy by confidence. A perfectly calibrated model follows the dashed line; the expected calibration "
            f"error, {calibration.error:.2%}, is the mean distance from it.": plots.plot_calibration(calibration),
            "Precision and recall by class, lowest recall first.": plots.plot_per_class(
                answers.per_class(labels, certainty), short
            ),
        }

    def _arrays(self):
        return tuple(np.concatenate(parts) for parts in zip(*self.kept))


def softmax(outputs):
    """Returns the softmax of logits over the last axis."""
    raised = np.exp(outputs - outputs.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def _balanced(tally):
    present = tally.total > 0
    return float(np.mean(tally.right[present] / tally.total[present]))


METRICS = {
    "accuracy": lambda tally: float(tally.right.sum() / tally.total.sum()),
    "balanced_accuracy": _balanced,
    "partial_auc": lambda tally: float(metrics.partial_auc(*map(np.concatenate, zip(*tally.ranked)))),
}
