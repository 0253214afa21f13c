"""The loss of regression."""

import keras
from keras import ops

from keras_vit.utils.configured import Loss

KINDS = {
    "l2": ops.square,
    "l1": ops.absolute,
    "huber": lambda x: ops.where(ops.absolute(x) < 1, ops.square(x) / 2, ops.absolute(x) - 0.5),
}


@keras.saving.register_keras_serializable(package="keras_vit")
class NumberLoss(Loss):
    """Squared, absolute or Huber loss of errors in standard deviations of the training data, averaged over the numbers.

    `"l2"` is the squared error, `"l1"` the absolute error, and `"huber"` half of the squared error up to one standard
    deviation, and linear beyond it (Huber 1964, doi:10.1214/aoms/1177703732).

    Args:
        kind: `"l2"`, `"l1"` or `"huber"`.
        deviation: Standard deviation of each number; `None` for 1.

    Call arguments:
        y_true: `(batch, numbers)`, in the units of the data.
        y_pred: `(batch, numbers)`, in the same units.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, kind="l2", deviation=None, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind
        self.deviation = None if deviation is None else [float(d) for d in deviation]

    def call(self, y_true, y_pred):
        errors = y_pred - ops.cast(y_true, y_pred.dtype)
        if self.deviation is not None:
            errors = errors / ops.convert_to_tensor(self.deviation, errors.dtype)
        return ops.mean(KINDS[self.kind](errors), axis=-1)  # (batch,)
