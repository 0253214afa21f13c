"""The model that is fitted in self-distillation: a student, and a teacher that follows it."""

import keras
from keras import ops

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.models.backbone import fill
from keras_vit.tasks.pretrain import teacher_schedules
from keras_vit.tasks.pretrain.encoder import check_student
from keras_vit.tasks.pretrain.moving_average import MovingAverage
from keras_vit.tasks.pretrain.prototypes import PrototypeHead

GLOBAL, LOCAL = "global_crops", "local_crops"
STUDENT, COLDEST = 0.1, 0.04  # temperatures: the student's, and the teacher's at first
CENTERING = 0.9  # share of itself that the center keeps in a step


class StudentTeacher(keras.Model):
    """Trains a student to say of each crop of an image what a teacher says of another one.

    Caron et al. 2021 (arXiv:2104.14294, "DINO"), algorithm 1 and equation 3. Both say shares of `prototypes`, by a
    softmax. The teacher sees the two global crops, the student all. The teacher's outputs are centered by a moving
    average of theirs and sharpened by a low temperature, and have no gradient: the teacher is a moving average of the
    student. Both begin with the same weights.

    Each training step moves the teacher first, towards the student that the last step left, and the center last, as in
    the algorithm. Both are variables, and so is the number of steps done.

    Args:
        model: The model that becomes the teacher, and is what is used afterwards; the student is a copy. Its layers
            follow each other, see `encoder.check_student`.
        prototypes: Number of outputs.
        hidden: Channels of the head's hidden layers.
        temperature: The teacher's temperature, after it has grown.
        momentum: Share of itself that the teacher keeps in the first step.

    Raises:
        ValueError: For a model that cannot take crops of two sizes.

    Call arguments:
        inputs: Dictionary of `"global_crops"`, pixels from 0 to 255, and, if there are any, `"local_crops"`.
        training: Whether to train the student: it has its dropout, and the teacher and the center move.

    Input shape:
        `(batch, 2, height, width, channels)`, `(batch, crops, smaller height, smaller width, channels)`.

    Output shape:
        `(batch, 3)`, float32: the loss of each image, the entropy of what the teacher says of it, the mean over its
        crops, and the entropy of the mean of all that the teacher says of the batch, in nats.
    """

    def __init__(self, model, prototypes, hidden=2048, temperature=0.07, momentum=0.996, **kwargs):
        check_student(arguments_of(model))
        super().__init__(autocast=False, **{"name": "learner", **kwargs})
        self.dtype_policy = model.dtype_policy  # tells `compile` to scale the loss of float16
        self.model = model
        self.student = fill(keras.models.clone_model(model), model.get_weights())
        self.layers_of_student = [each for each in self.student.layers if not isinstance(each, keras.layers.InputLayer)]
        heads = [
            PrototypeHead(prototypes, hidden, name=name, dtype=model.dtype_policy)
            for name in ("head", "head_of_teacher")
        ]
        for head in heads:
            head.build(model.output_shape)
        self.head, self.head_of_teacher = heads
        fill(self.head_of_teacher, self.head.get_weights())
        self.prototypes = prototypes
        self.temperature = temperature
        self.momentum = momentum
        self.follow = MovingAverage([(self.model, self.student), (self.head_of_teacher, self.head)])
        self.center = self.add_weight((prototypes,), "zeros", trainable=False, autocast=False, name="center")
        self.step = self.add_weight((), "zeros", "int32", trainable=False, name="step")
        # Steps of the run, those in which the temperature grows, and those without training of the prototypes.
        self.plan = self.add_weight((3,), "zeros", "int32", trainable=False, name="plan")
        self.built = True

    @property
    def output_shape(self):
        return (None, 3)

    @property
    def trainable_variables(self):
        fixed = {id(variable) for part in (self.model, self.head_of_teacher) for variable in part.variables}
        return [variable for variable in super().trainable_variables if id(variable) not in fixed]

    @property
    def non_trainable_variables(self):
        trained = {id(variable) for variable in self.trainable_variables}
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def trainable_weights(self):
        return self.trainable_variables

    @property
    def non_trainable_weights(self):
        trained = {id(variable) for variable in self.trainable_variables}
        return [variable for variable in self.weights if id(variable) not in trained]

    def call(self, inputs, training=None):
        crops = [ops.cast(inputs[name], "float32") for name in (GLOBAL, LOCAL) if name in inputs]
        if training:
            self.follow(teacher_schedules.momentum(self.step - 1, self.plan[0], self.momentum))
        logits = ops.stop_gradient(_each(lambda x: self.head_of_teacher(self.model(x, training=False)), crops[0]))
        heat = teacher_schedules.temperature(self.step, self.plan[1], min(COLDEST, self.temperature), self.temperature)
        said = ops.softmax((logits - self.center) / heat, axis=-1)  # (batch, 2, prototypes)
        seen = [_each(lambda x: self._student(x, training), each) for each in crops]
        loss = cross_entropy(said, ops.concatenate(seen, axis=1) / STUDENT)  # (batch,)
        alone = ops.mean(entropy(said), axis=1)
        together = ops.broadcast_to(entropy(ops.mean(said, axis=(0, 1))), ops.shape(loss))
        if training:
            mean = ops.mean(logits, axis=(0, 1))
            self.center.assign(CENTERING * ops.convert_to_tensor(self.center) + (1 - CENTERING) * mean)
            self.step.assign_add(1)
        return ops.stack([loss, alone, together], axis=-1)

    def _student(self, images, training):
        """Returns what the student says of images of any size, `(batch, prototypes)`."""
        for layer in self.layers_of_student:
            images = layer(images)
        return self.head(images, trained=ops.cast(self.step >= self.plan[2], "float32") if training else None)


def cross_entropy(said, logits):
    """Returns the mean cross-entropy of each image over pairs of a global crop and any other crop, `(batch,)`.

    Args:
        said: Shares that the teacher says of the global crops, `(batch, 2, prototypes)`.
        logits: The student's of all crops, in the same order, `(batch, crops, prototypes)`, two or more.
    """
    logs = ops.log_softmax(logits, axis=-1)
    pairs = -ops.matmul(said, ops.transpose(logs, (0, 2, 1)))  # (batch, 2, crops)
    own = pairs[:, 0, 0] + pairs[:, 1, 1]  # of the same crop
    return (ops.sum(pairs, axis=(1, 2)) - own) / (2 * (logits.shape[1] - 1))


def entropy(shares):
    """Returns the entropy of shares along the last axis, in nats."""
    return -ops.sum(shares * ops.log(ops.maximum(shares, 1e-30)), axis=-1)


def _each(function, crops):
    """Returns outputs, `(batch, crops, prototypes)`, of `(batch, crops, height, width, channels)`."""
    outputs = function(ops.reshape(crops, (-1, *crops.shape[2:])))
    return ops.reshape(outputs, (-1, crops.shape[1], outputs.shape[-1]))
