"""EMA weights: an exponential moving average of the weights, used to evaluate and to save."""

import contextlib

import keras

from keras_vit.utils.keras_private import ema_weights


class EvaluateWithEMA(keras.callbacks.Callback):
    """Evaluates with the EMA weights.

    Keras's `SwapEMAWeights` swaps by adding and subtracting, which rounds the weights each time.
    """

    def on_test_begin(self, logs=None):
        swap(self.model)

    def on_test_end(self, logs=None):
        swap(self.model)


@contextlib.contextmanager
def averaged(model):
    """A block in which a model has its EMA weights, if there are any."""
    swap(model)
    try:
        yield model
    finally:
        swap(model)


def swap(model):
    """Exchanges the weights and their EMA; does nothing without EMA."""
    optimizer = optimizer_of(model)
    for variable, average in ema_weights(optimizer) if optimizer else ():
        now = keras.ops.copy(variable.value)
        variable.assign(average)
        average.assign(now)


def optimizer_of(model):
    """Returns a model's optimizer, without the one that scales the loss around it; `None` if it is not compiled."""
    optimizer = getattr(model, "optimizer", None)
    return getattr(optimizer, "inner_optimizer", optimizer)
