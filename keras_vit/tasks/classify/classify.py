"""Classification: one label for each image; with several, `several.py` has what differs."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import keras
import numpy as np
from keras import ops

from keras_vit.models.outputs import distinct
from keras_vit.tasks.base import Task
from keras_vit.tasks.classify import class_tally, distillation, keras_metrics
from keras_vit.tasks.classify.balance import label_weights
from keras_vit.tasks.measured import Measured
from keras_vit.utils.checked import number
from keras_vit.utils.losses import Loss, end_of


@dataclass(frozen=True, repr=False)
class Classify(Task):
    """One label for each image: loss, class weights, distillation and metrics. `multilabel=True` makes a `Several`.

    The number of classes is `num_classes` of the recipe's model; that of the data where it is not set.
    """

    targets = ("labels",)
    best = ("val_accuracy", "max")
    measured = ("metrics",)

    loss: Literal["softmax", "sigmoid"] | None = None  # softmax; with several labels sigmoid
    head_bias: float | None = None  # initial bias of the head; -log(classes) suits a sigmoid
    label_smoothing: float = number(0.0, below=1)
    class_weights: bool = False  # weight the loss of a class inversely to its frequency
    distill: Literal["soft", "hard"] | None = None  # see `keras_vit.Distiller`
    teacher: str | None = None  # checkpoint, published name or `.keras` file
    distill_weight: float = number(0.5, most=1)  # share of the teacher in the loss
    temperature: float = number(3.0, low=1e-3)  # of soft distillation
    metrics: tuple[str, ...] = ("accuracy",)  # names in `scores.SCORES`, and metrics of Keras; see `keras_metrics`
    multilabel: bool = False  # several labels for each image, or none

    def __new__(cls, *values, multilabel=False, **options):
        if multilabel:
            from keras_vit.tasks.classify.several import several_of

            cls = several_of(cls)
        return super().__new__(cls)

    def __post_init__(self):
        object.__setattr__(self, "metrics", keras_metrics.texts(self.metrics))
        super().__post_init__()

    def check(self, recipe):
        classes = recipe.model.get("num_classes", 2)
        if classes in (None, 0, 1):
            raise ValueError(f"A classifier must have two classes or more. Received: model.num_classes={classes}")
        class_tally.check(self.metrics, self.loss, recipe.model.get("num_classes"))

    def on(self, source, arguments=None):
        names = source.class_names
        if arguments is not None and arguments["num_classes"] not in (None, len(names)):
            raise ValueError(
                f"The model must have as many classes as the data, {len(names)}. "
                f"Received: {arguments['num_classes']} classes"
            )
        if self.classes not in ((), tuple(names)):
            raise ValueError(f"`classes` must be the data's, {tuple(names)!s:.200}. Received: {self.classes!s:.200}")
        source.check_labels()
        return dataclasses.replace(self, classes=tuple(names))

    def settled(self, source):
        return {"num_classes": len(source.class_names)}

    def classes_for(self, arguments):
        if not self.classes and arguments["num_classes"] is None:
            raise ValueError("A recipe for arrays must set model.num_classes. Received: none")
        return self.classes or tuple(map(str, range(arguments["num_classes"])))

    def of_model(self, model):
        end = end_of(model)
        single = model.output_shape[-1] == 1  # whose logits are those of two classes
        return dataclasses.replace(self, loss=end) if end and not single else self

    def fits(self, model):
        return model.output_shape[-1] == len(self.classes)

    def model(self, **arguments):
        model = self.vit(**arguments)
        if len(model.output_shape) != 2:
            raise ValueError(
                "A classifier must return one vector of logits per image. "
                f"Received: output shape {model.output_shape}, pooling={model.get_layer('pool').pooling!r}"
            )
        return model

    def teacher_for(self, model, given=None):
        return distillation.load_teacher(self, model, given)

    def learner(self, model, teacher=None):
        return distillation.learner(self, model, teacher)

    def compiled(self, source):
        weights = label_weights(source) if self.class_weights else None
        loss = ClassLoss(self.loss or "softmax", self.label_smoothing, weights)
        return {"loss": loss, "weighted_metrics": ["accuracy"]}

    def callbacks(self, run):
        more = [name for name in self.tally().scores if name != "accuracy"]  # which Keras counts
        return [Measured(run, self.tally, more)] if more else []

    def batch(self, examples, augment, seed):
        from keras_vit.data.augment.mixing import mixed

        return mixed(examples, len(self.classes), augment, seed)

    def tally(self, keep=False):
        return class_tally.ClassTally(self, keep)

    def answer(self, output):
        certainty, names = self.probabilities(output), distinct(self.classes)
        return {names[i]: float(certainty[i]) for i in np.argsort(-certainty, kind="stable")}

    def probabilities(self, outputs):
        """Returns the probabilities of the classes, float64, of outputs of the same shape: as the loss has them."""
        from scipy.special import expit, softmax

        outputs = np.asarray(outputs, "float64")
        return expit(outputs) if self.loss == "sigmoid" else softmax(outputs, -1)

    def caption(self, output, example):
        (name, certainty), *_ = self.answer(output).items()
        label = distinct(self.classes)[example["labels"]]
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
        y_true: `(batch, classes)`, rows that sum to one.
        y_pred: `(batch, classes)`, logits.
    """

    def __init__(self, kind="softmax", label_smoothing=0.0, class_weights=None, name="loss", **kwargs):
        super().__init__(name=name, **kwargs)
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

    def get_config(self):
        own = ("kind", "label_smoothing", "class_weights")
        return {**super().get_config(), **{name: getattr(self, name) for name in own}}
