"""The loss of self-distillation, and its metrics: columns of what `StudentTeacher` returns."""

import keras
from keras import ops

from keras_vit.utils.configured import Loss

ALONE, TOGETHER = "teacher_entropy", "mean_entropy"


class CropsLoss(Loss):
    """The loss of each image, `(batch,)`, the first column of `(batch, 3)`; the targets are not used."""

    def call(self, y_true, y_pred):
        return y_pred[:, 0]


def metrics():
    """Returns Keras metrics: the mean entropy of the teacher's outputs, and the entropy of their mean, in nats."""
    return [_column(i, name) for i, name in enumerate((ALONE, TOGETHER), 1)]


def _column(number, name):
    return keras.metrics.MeanMetricWrapper(lambda y_true, y_pred: ops.take(y_pred, number, axis=-1), name=name)
