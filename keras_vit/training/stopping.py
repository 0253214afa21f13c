"""Callbacks that stop training: when the loss diverges, and on Ctrl-C, SIGTERM or SIGHUP."""

import contextlib
import math
import signal

import keras
import numpy as np

from keras_vit.training import state
from keras_vit.training.devices import TOGETHER
from keras_vit.training.pace import learning_rate
from keras_vit.utils.signals import handled


class Stopped(KeyboardInterrupt):
    """Training stopped on request, after saving its state. `signal` is the number of the signal."""

    signal = signal.SIGINT


@contextlib.contextmanager
def signals():
    """A block that yields a list and appends Ctrl-C, SIGTERM and SIGHUP to it; a second signal interrupts at once."""
    received = []

    def note(number, frame):
        if received:
            raise _stopped(received[0], "Interrupted.")
        received.append(number)

    with handled(note):
        yield received


class StopOnSignal(keras.callbacks.Callback):
    """Saves the training state and raises `Stopped` once any process has received a signal.

    Args:
        run: A `Run`.
        keep: The `KeepState` that saves.
        received: The list that `signals` yields.
    """

    def __init__(self, run, keep, received):
        super().__init__()
        self.run = run
        self.keep = keep
        self.received = received

    def on_train_batch_end(self, batch, logs=None):
        alone = self.run.place.processes == 1
        if self.run.step < self.run.steps and (alone or self.run.step % TOGETHER == 0) and (number := self._agreed()):
            self.keep.save()
            self._stop(number)

    def on_epoch_end(self, epoch, logs=None):
        if number := self._agreed():
            self._stop(number)  # `KeepState` has already saved this epoch

    def on_run_end(self):
        """Raises `Stopped` for a signal that came after the last epoch."""
        self.on_epoch_end(None)

    def _agreed(self):
        """Returns the number of the signal that any process has received, or 0."""
        (number,) = self.run.place.agree([int(self.received[0]) if self.received else 0])
        return number

    def _stop(self, number):
        raise _stopped(
            number,
            f"Stopped after epoch {self.run.epoch}, step {self.run.step} of {self.run.steps}. The training state is "
            f"saved in {str(self.run.folder)!r}; the same call resumes from there.",
        )


def _stopped(number, message):
    stopped = Stopped(message)
    stopped.signal = number
    return stopped


class StopOnNaN(keras.callbacks.Callback):
    """Raises RuntimeError when the loss becomes NaN or infinite."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(logs["loss"]):
            self.run.step += 1  # `KeepState` has not counted this step yet
            raise diverged(self.run, self.model, f"loss became {logs['loss']}")


def finite(run, outputs):
    """Returns a model's outputs, an array; raises the error for diverged training if one is NaN or infinite.

    The last step of an epoch may break the weights after its loss was finite.
    """
    if not np.isfinite(outputs).all():
        raise diverged(run, run.learner, "outputs became NaN or infinite")
    return outputs


def diverged(run, model, what):
    """Returns the error for diverged training: where, the last good state, and what may help."""
    good = state.newest(run.folder)
    return RuntimeError(
        f"The {what} in epoch {run.epoch + 1}, step {run.step}, at a learning rate of {learning_rate(model):g}. "
        + (f"The last good training state is {str(good[2])!r}" if good else "No training state was saved before")
        + "; a lower learning rate, a longer warm-up or a smaller optim.clip_norm may help."
    )
