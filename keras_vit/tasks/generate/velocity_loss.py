"""The loss of rectified flow."""

import keras
from keras import ops

from keras_vit.utils.configured import Loss


@keras.saving.register_keras_serializable(package="keras_vit")
class VelocityLoss(Loss):
    """Mean squared error of the velocities of each image.

    Call arguments:
        y_true: Velocities, `(batch, height, width, channels)`.
        y_pred: Predicted velocities, `(batch, height, width, channels)`. Further channels are ignored.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def call(self, y_true, y_pred):
        y_pred = y_pred[..., : y_true.shape[-1]]
        return ops.mean(ops.square(y_pred - ops.cast(y_true, y_pred.dtype)), axis=(1, 2, 3))  # (batch,)
