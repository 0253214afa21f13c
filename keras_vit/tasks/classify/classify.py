"""Classification: one label for each image, or several. `OneLabel` and `SeveralLabels` hold the differences."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import keras
import numpy as np
from keras import ops

from keras_vit.models.backbone import keeper
from keras_vit.models.outputs import NONE, check_known, distinct
from keras_vit.models.unknown import stated_unknown
from keras_vit.tasks.base import Task
from keras_vit.tasks.class_names import named_by, numbered
from keras_vit.tasks.classify import class_tally, distillation, keras_metrics
from keras_vit.tasks.classify.balance import label_weights
from keras_vit.tasks.classify.labels import Labels
from keras_vit.tasks.classify.several import SeveralLabels
from keras_vit.tasks.classify.unknown import share_below, strangeness
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.shown import words
from keras_vit.utils.checked import number, only_with
from keras_vit.utils.configured import Loss
from keras_vit.utils.losses import end_of


@dataclass(frozen=True, repr=False)
class Classify(Task):
    """One label for each image, or several: loss, class weights, distillation and metrics.

    The model returns logits, `(batch, classes)`. The number of classes is `num_classes` of the recipe's model; if it is
    not set, the number of the data's classes. With `multilabel=True` an image has several labels, or none: see
    `SeveralLabels` for the options.
    """

    any_range = True
    measured = ("metrics",)
    unknown = None  # no option: a trained model's rule for images of none of its classes, see `unknown`

    loss: Literal["softmax", "sigmoid", "asymmetric"] | None = None  # softmax; sigmoid for several labels
    head_bias: float | None = None  # initial bias of the head; -log(classes) suits a sigmoid
    label_smoothing: float = number(0.0, below=1)
    class_weights: bool = False  # weight the loss of a class inversely to its frequency
    distill: Literal["soft", "hard"] | None = None  # see `keras_vit.Distiller`
    teacher: str | None = None  # checkpoint, published name or `.keras` file
    distill_weight: float = number(0.5, most=1)  # weight of the teacher in the loss, 0 to 1
    temperature: float = number(3.0, low=1e-3)  # of soft distillation
    metrics: tuple[str, ...] = ("accuracy",)  # names in `scores.SCORES`, and metrics of Keras; see `keras_metrics`
    multilabel: bool = False  # several labels for each image, or none
    thresholds: tuple[float, ...] = only_with("multilabel", ())  # least probability of a label, one per class

    def __post_init__(self):
        object.__setattr__(self, "metrics", keras_metrics.texts(self.metrics))
        super().__post_init__()
        if self.loss not in (None, *self.labels.losses):
            raise ValueError(f"{self.labels.said} Received: loss={self.loss!r}")

    @property
    def labels(self):
        """The rules of the labels, a `OneLabel` or a `SeveralLabels`."""
        return SeveralLabels(self) if self.multilabel else OneLabel(self)

    @property
    def targets(self):
        return self.labels.targets

    @property
    def best(self):
        return self.labels.best

    @property
    def gives(self):
        return self.labels.gives

    @property
    def columns(self):
        return self.labels.columns

    def check(self, recipe=None):
        super().check(recipe)
        classes = recipe.model.get("num_classes", 2)
        if classes in (None, 0, 1):
            raise ValueError(f"A classifier must have two classes or more. Received: model.num_classes={classes}")
        self.labels.check(recipe)

    def on(self, source, arguments=None):
        self.labels.check_data(source)
        task = named_by(self, source, arguments)
        source.check_labels()
        return task

    def settled(self, source):
        self.labels.warn_of(source)
        return {"num_classes": len(source.class_names)}

    def classes_for(self, arguments):
        return numbered(self, arguments)

    def of_model(self, model):
        task = dataclasses.replace(self, **self.labels.of_model(model))
        object.__setattr__(task, "unknown", None if self.multilabel else stated_unknown(model))
        if task.unknown is not None:
            check_known(task.classes)
        return task

    def fits(self, model):
        """Returns whether the model's output, `(batch, classes)`, has as many logits as the task has classes."""
        return model.output_shape[-1] == len(self.classes)

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to logits, `(batch, classes)`."""
        model = self.vit(**arguments)
        if len(model.output_shape) != 2:
            raise ValueError(
                "A classifier must return one vector of logits per image. "
                f"Received: output shape {model.output_shape}, pooling={model.get_layer('pool').pooling!r}"
            )
        return model

    def teacher_for(self, model, given=None):
        """Returns the teacher, with the input and output shape of `model`, or `None`; see `load_teacher`."""
        return distillation.load_teacher(self, model, given)

    def learner(self, model, teacher=None):
        """Returns the model itself, or a `Distiller`; in training its output is `(batch, heads, classes)`."""
        self.labels.forget(model)
        return distillation.learner(self, model, teacher)

    def compiled(self, source):
        return self.labels.compiled(source)

    def callbacks(self, run):
        return self.labels.callbacks(run)

    def finish(self, run):
        self.labels.finish(run)

    def batch(self, examples, augment, seed):
        """Returns float32 images, `(batch, height, width, channels)`, 0..255, and labels, `(batch, classes)`, 0..1."""
        return self.labels.batch(examples, augment, seed)

    def tally(self, keep=False):
        return self.labels.tally(keep)

    def probabilities(self, outputs):
        """Returns probabilities, float64, 0..1, from logits of the same shape, `(..., classes)`, by the loss."""
        return self.labels.probabilities(outputs)

    def answer(self, output):
        """Returns the probability of each class, 0..1, by name, the most important first, from logits, `(classes,)`.

        Of an image of none of the classes, "none of these" comes first, with the share of validation images that are
        less strange.
        """
        certainty, names = self.probabilities(np.asarray(output)[: len(self.classes)]), distinct(self.classes)
        answer = {names[i]: float(certainty[i]) for i in self.labels.order(certainty)}
        strange = self.unknown and strangeness(self.unknown, output, len(self.classes))
        if strange is None or strange <= self.unknown["threshold"]:
            return answer
        return {NONE: share_below(self.unknown, strange), **answer}

    def thresholds_by_name(self):
        """Returns the threshold of each class, 0..1, by its name in `answer`; empty with one label per image."""
        return self.labels.thresholds_by_name()

    def listed(self, output, top):
        """Returns the first `top` pairs of the answer, and all labels that hold, from logits, `(classes,)`."""
        return super().listed(output, max(top, len(self._holding(output))))

    def heading(self, output):
        """Returns the likeliest class, or all labels that hold, as text, from logits, `(classes,)`."""
        if not self.multilabel:
            return super().heading(output)
        return words(self._holding(output).items()) or "no label"

    def marked(self, answer):
        """Returns an answer with the names of labels that hold in brackets."""
        least = self.thresholds_by_name()
        return {f"[{name}]" if value >= least.get(name, np.inf) else name: value for name, value in answer.items()}

    def _holding(self, output):
        """Returns the labels of one image, whose probability reaches their threshold, from logits, `(classes,)`."""
        least = self.thresholds_by_name()
        return {name: value for name, value in self.answer(output).items() if value >= least.get(name, np.inf)}

    def caption(self, output, example):
        """Returns the true label, and the prediction if it differs, from logits, `(classes,)`, and the targets."""
        return self.labels.caption(output, example)


class OneLabel(Labels):
    """The rules of one label for each image: the target `labels`, integers, `(batch,)`."""

    targets = ("labels",)
    best = ("val_accuracy", "max")
    losses = ("softmax", "sigmoid")
    said = "Classify.loss='asymmetric' is for several labels, multilabel=True."

    def check(self, recipe):
        class_tally.check(self.task.metrics, self.task.loss, recipe.model.get("num_classes"))

    def of_model(self, model):
        end = end_of(model)
        single = model.output_shape[-1] == 1  # which `logits_by` turns into two logits
        return {"loss": end} if end and not single else {}

    def forget(self, model):
        """Removes the rule for images of no class from the metadata of a model with loaded weights."""
        if (layer := keeper(model)) is not None:
            layer.metadata.pop("unknown", None)

    def compiled(self, source):
        weights = label_weights(source) if self.task.class_weights else None
        loss = ClassLoss(self.task.loss or "softmax", self.task.label_smoothing, weights)
        return {"loss": loss, "weighted_metrics": ["accuracy"]}

    def callbacks(self, run):
        more = [name for name in self.tally().scores if name != "accuracy"]  # Keras computes accuracy
        return [Measured(run, self.task.tally, more)] if more else []

    def batch(self, examples, augment, seed):
        """Returns float32 images, and float32 labels, `(batch, classes)`, whose rows sum to one; MixUp blends both."""
        from keras_vit.data.augment.mixing import mixed

        return mixed(examples, len(self.task.classes), augment, seed)

    def tally(self, keep=False):
        return class_tally.ClassTally(self.task, keep)

    def probabilities(self, outputs):
        """Returns probabilities, float64, from logits of the same shape, `(..., classes)`, by the task's loss."""
        from scipy.special import expit, softmax

        outputs = np.asarray(outputs, "float64")
        return expit(outputs) if self.task.loss == "sigmoid" else softmax(outputs, -1)

    def caption(self, output, example):
        """Returns text such as `"cat, predicted dog (81%)"`, from logits, `(classes,)`, and `"labels"`, an integer."""
        (name, certainty), *_ = self.task.answer(output).items()
        label = distinct(self.task.classes)[example["labels"]]
        return f"{label}{'' if label == name else f', predicted {name}'} ({certainty:.0%})"


@keras.saving.register_keras_serializable(package="keras_vit")
class ClassLoss(Loss):
    """Cross-entropy between labels and logits, by a softmax or by one sigmoid per class.

    The sigmoid form sums over classes, as in big_vision (Beyer et al. 2020, arXiv:2006.07159, section 5).

    Args:
        kind: `"softmax"` or `"sigmoid"`.
        label_smoothing: Share of each label that is spread evenly over all classes.
        class_weights: Factor on the loss of an image, one per class; `None` for 1.

    Call arguments:
        y_true: `(batch, classes)`, 0..1, rows that sum to one.
        y_pred: `(batch, classes)`, logits.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, kind="softmax", label_smoothing=0.0, class_weights=None, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind
        self.label_smoothing = label_smoothing
        self.class_weights = None if class_weights is None else [float(w) for w in class_weights]

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true, y_pred.dtype)
        smooth = labels * (1 - self.label_smoothing) + self.label_smoothing / labels.shape[-1]
        if self.kind == "softmax":
            loss = -ops.sum(smooth * ops.log_softmax(y_pred, axis=-1), axis=-1)
        else:
            loss = -ops.sum(smooth * ops.log_sigmoid(y_pred) + (1 - smooth) * ops.log_sigmoid(-y_pred), axis=-1)
        if self.class_weights is not None:
            loss = loss * ops.sum(labels * ops.convert_to_tensor(self.class_weights, labels.dtype), axis=-1)
        return loss  # (batch,)
