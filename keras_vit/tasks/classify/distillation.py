"""The model that is fitted for a classifier: the classifier itself, or the student of a teacher."""

import keras
import numpy as np
from keras import ops

from keras_vit.models.backbone import HEADS
from keras_vit.models.outputs import differ
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.packed import check_packed
from keras_vit.utils.typed import typed
from keras_vit.utils.warned import warn


@keras.saving.register_keras_serializable(package="keras_vit")
class Distiller(keras.Model):
    """Trains a student model with a teacher. Compile and fit it, then use its `student`.

    The loss is `(1 - weight) * loss(labels, class head) + weight * d`, where `d` compares the distillation head with
    the teacher (Touvron et al. 2021, DeiT, arXiv:2012.12877, equations 2 and 3):

    - `"soft"`: `temperature**2 * KL(softmax(teacher / temperature), softmax(student / temperature))`;
    - `"hard"`: cross-entropy with the teacher's most likely class;
    - `"several"`, for several labels per image: the divergence of `"soft"`, for each class by a sigmoid, summed.

    A student from `vit(tokens={"distilled": True})` trains each of its two heads on its own target. Any other student
    trains its one head on both.

    Args:
        student: Model from images, `(batch, height, width, channels)`, to logits, `(batch, classes)`.
        teacher: Model with the same input shape, range of pixels and classes. It is frozen.
        kind: `"soft"`, `"hard"` or `"several"`.
        weight: Share of the teacher in the loss, from 0 to 1.
        temperature: Temperature of `"soft"` and `"several"`, above 0.

    Call arguments:
        images: Tensor of images, as the student takes them.
        training: Whether to return the logits of each head, for the loss.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        `(batch, classes)`, the mean over the heads; in training `(batch, heads, classes)`, with one or two heads.

    Raises:
        ValueError: If the teacher's input or output shape, its range of pixels or the names or the order of its classes
            differ from the student's, or one returns probabilities.
    """

    @typed
    def __init__(
        self,
        student: keras.Model,
        teacher: keras.Model,
        kind: str = "hard",
        weight: float = 0.5,
        temperature: float = 3.0,
        **kwargs,
    ):
        check_models(student, teacher)
        checks.one_of("kind", kind, ("soft", "hard", "several"))
        checks.above_zero(temperature=temperature)
        checks.number(weight=weight)
        if not 0 <= weight <= 1:
            raise ValueError(f"`weight` must be from 0 to 1. Received: weight={weight}")
        super().__init__(autocast=False, **kwargs)  # pixels stay as they are
        self.dtype_policy = student.dtype_policy  # tells `compile` to scale the loss of float16
        teacher.trainable = False
        for variable in teacher.weights:  # a layer cloned as frozen does not freeze its sublayers
            variable.trainable = False
        self.student = student
        self.teacher = teacher
        self.kind = kind
        self.weight = weight
        self.temperature = temperature
        layers = {layer.name: layer for layer in student.layers}
        heads = {name: layers[name].output for name in HEADS if name in layers} or {"head": student.outputs[0]}
        self.heads = keras.Model(student.inputs, heads)
        self.names = list(heads)
        self.built = True

    @property
    def output_shape(self):
        return self.student.output_shape

    def call(self, images, training=None):
        outputs = self.heads(images, training=training)
        logits = ops.stack([outputs[name] for name in self.names], axis=1)  # (batch, heads, classes)
        return logits if training else ops.mean(logits, axis=1)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if len(y_pred.shape) == 2:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        by_labels = super().compute_loss(x, y, y_pred[:, 0], sample_weight, training)
        by_teacher = self.from_teacher(x, y_pred[:, -1])
        if sample_weight is not None:
            by_teacher = by_teacher * ops.cast(ops.reshape(sample_weight, (-1,)), by_teacher.dtype)
        return (1 - self.weight) * by_labels + self.weight * ops.mean(by_teacher)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        y_pred = ops.mean(y_pred, axis=1) if len(y_pred.shape) == 3 else y_pred
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def from_teacher(self, images, logits):
        """Returns `d` of each image, `(batch,)`, from images and the logits, `(batch, classes)`, of the last head."""
        target = ops.stop_gradient(self.teacher(images, training=False))
        if self.kind == "hard":
            return keras.losses.sparse_categorical_crossentropy(ops.argmax(target, -1), logits, True)
        t = self.temperature
        if self.kind == "several":
            true, false = ops.sigmoid(target / t), ops.sigmoid(-target / t)
            yes = ops.log_sigmoid(target / t) - ops.log_sigmoid(logits / t)
            no = ops.log_sigmoid(-target / t) - ops.log_sigmoid(-logits / t)
            return t**2 * ops.sum(true * yes + false * no, axis=-1)
        shares = ops.softmax(target / t, axis=-1)
        return t**2 * ops.sum(shares * (ops.log_softmax(target / t) - ops.log_softmax(logits / t)), axis=-1)

    def get_config(self):
        return {
            **{name: keras.saving.serialize_keras_object(getattr(self, name)) for name in ("student", "teacher")},
            **{name: getattr(self, name) for name in ("kind", "weight", "temperature", "name")},
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        models = {
            name: keras.saving.deserialize_keras_object(config[name], custom_objects=custom_objects)
            for name in ("student", "teacher")
        }
        return cls(**{**config, **models})


def learner(task, model, teacher=None):
    """Returns the model to fit: a classifier itself, or a `Distiller`. A new head starts with the task's bias.

    Args:
        task: A `Classify`.
        model: Model from images, `(batch, height, width, channels)`, to logits, `(batch, classes)`.
        teacher: The model that `load_teacher` returned, or `None`.
    """
    if task.head_bias is not None:
        for layer in model.layers:
            if layer.name in HEADS and not np.any(layer.bias):  # trained ones stay
                layer.bias.assign(ops.full(layer.bias.shape, task.head_bias))
    if task.distill is None:
        return model
    kind = "several" if task.multilabel else task.distill
    return Distiller(model, teacher, kind, task.distill_weight, task.temperature)


def load_teacher(task, model, given=None):
    """Returns the model to distill from, or `None`.

    Args:
        task: A `Classify`, whose `distill` and `teacher` are read.
        model: The student.
        given: The caller's teacher, which takes the place of the task's; or `None`.
    """
    if not task.distill:
        if given is not None or task.teacher is not None:
            raise ValueError("A teacher needs task.distill='soft' or 'hard'. Received: task.distill=None")
        return None
    if given is None and task.teacher is None:
        raise ValueError("task.distill needs a teacher: task.teacher, or the argument `teacher`.")
    if given is not None:
        teacher = given
    elif task.teacher.endswith(".keras"):
        check_packed(task.teacher)
        teacher = keras.models.load_model(task.teacher)
    else:
        from keras_vit.checkpoints.pretrained import from_pretrained

        teacher = from_pretrained(task.teacher, image_size=tuple(model.input_shape[1:3]))
    check_models(model, teacher)
    return teacher


def check_models(student, teacher):
    """Raises an error unless two Keras models take the same images, know the same classes, and return logits."""
    about = {"student": Traits(student), "teacher": Traits(teacher)}
    for name, each in about.items():
        checks.model(each.model, name)
        if each.shares:
            raise ValueError(
                f"The {name} must return logits. Received: {each.model.name!r}, which returns probabilities"
            )
    for what in ("input_shape", "output_shape"):
        if getattr(student, what) != getattr(teacher, what):
            raise ValueError(
                f"The teacher's {what} must be the student's, {getattr(student, what)}. "
                f"Received: {getattr(teacher, what)}"
            )
    own_range, teacher_range = about["student"].range, about["teacher"].range
    if own_range != teacher_range:
        raise ValueError(f"The teacher must take pixels in the student's range, {own_range}. Received: {teacher_range}")
    names, others = about["student"].labels, about["teacher"].labels
    if differ(names, others):
        rule = f"the student's classes in their order, {', '.join(names)!s:.100}. Received: {', '.join(others)!s:.100}"
        if any(name != other and name in others for name, other in zip(names, others)):
            raise ValueError(f"The teacher must have {rule}. To rename them: keras_vit.class_names(teacher, names)")
        warn(f"The teacher's classes have other names. It is taken to have {rule}")
