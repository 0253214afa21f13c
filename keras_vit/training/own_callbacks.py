"""The caller's own callbacks in a run."""

import importlib.util

import keras

from keras_vit.utils import checks

REFUSED = {  # callbacks of Keras that would contradict a run, and what does their work
    "BackupAndRestore": "the run's own training state does it",
    "LearningRateScheduler": "the recipe has the schedule: optim.schedule",
    "ReduceLROnPlateau": "the recipe has the schedule: optim.schedule",
    "SwapEMAWeights": "optim.ema does it",
}


def listed(callbacks):
    """Returns callbacks, or one, as a list; raises an error for what is none, or would contradict a run."""
    callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise TypeError(
                f"`callbacks` must be a list of keras.callbacks.Callback. Received: {checks.shown(callback):.200}"
            )
        kind = type(callback).__name__
        if kind in REFUSED and isinstance(callback, getattr(keras.callbacks, kind)):
            raise ValueError(
                f"A run takes no {kind}: {REFUSED[kind]}. Received: callbacks with {checks.shown(callback):.200}"
            )
        if getattr(callback, "restore_best_weights", False):
            raise ValueError(
                "A run keeps the best model in best.keras, and optim.patience returns it. "
                f"Received: callbacks with {kind}(restore_best_weights=True)"
            )
    return callbacks


def tensorboard(folder):
    """Returns Keras's callback for TensorBoard, which writes into a folder.

    Raises:
        ImportError: If TensorBoard is not installed.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError("`tensorboard=True` needs TensorBoard, which is not installed: pip install tensorboard.")
    return keras.callbacks.TensorBoard(str(folder), write_graph=False)


class OwnCallbacks(keras.callbacks.CallbackList):
    """Calls the caller's callbacks over a whole run, which is more than one `fit`: it begins once and ends once.

    Numbers that they add to the logs of an epoch become columns of `history.csv`. What is there they cannot change.

    Args:
        callbacks: List of `keras.callbacks.Callback`.
    """

    def __init__(self, callbacks):
        super().__init__(list(callbacks))
        self.begun = False

    def on_train_begin(self, logs=None):
        if not self.begun:
            self.begun = True
            super().on_train_begin(logs)

    def on_train_end(self, logs=None):
        """Waits for `on_run_end`."""

    def on_run_end(self):
        """Ends what began."""
        if self.begun:
            super().on_train_end()

    def on_epoch_end(self, epoch, logs=None):
        for callback in self.callbacks:
            seen = dict(logs)
            callback.on_epoch_end(epoch, seen)
            columns = {"epoch", *logs}  # columns of `history.csv`
            logs |= {name: _number(name, value) for name, value in seen.items() if name not in columns}


def _number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"What a callback adds to an epoch's logs must be numbers, for history.csv. "
            f"Received: {name}={checks.shown(value):.200}"
        ) from None
