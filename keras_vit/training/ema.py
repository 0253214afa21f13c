"""EMA weights: an exponential moving average of the weights, used to evaluate and to save."""

import contextlib
import math

import keras

from keras_vit.utils.keras_private import ema_weights
from keras_vit.utils.warned import warn

LAG = 0.05  # of the initial weights in the EMA weights, at most, at the end of a run


def warn_of_lag(optim, steps):
    """Warns if a run is too short for its EMA, which begins with the initial weights; `steps` are of an epoch."""
    updates = max(optim.epochs * steps // optim.accumulate, 1)
    share = (optim.ema or 0.0) ** updates
    if share > LAG:
        better = math.floor(1e4 * LAG ** (1 / updates)) / 1e4
        warn(
            f"At the end of {updates:,} updates, the EMA weights, which are evaluated and saved, are still {share:.0%} "
            f"the initial ones: optim.ema={optim.ema} is for longer runs. Take {better} or less."
        )


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
