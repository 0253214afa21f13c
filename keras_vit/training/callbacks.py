"""What happens beside the steps of a training: saving, watching, averaging, telling the pace."""

import contextlib
import csv
import math
import pathlib
import signal
import threading
import time

import keras
import numpy as np

from keras_vit import files
from keras_vit.keras_private import ema_weights
from keras_vit.training import rundir, state
from keras_vit.training.devices import ALONE

SAVE_SECONDS = 600.0
TOGETHER = 10  # steps after which processes ask each other, which takes about a millisecond


class Stopped(KeyboardInterrupt):
    """The training was asked to stop, and has saved its state. `signal` is the number of what asked."""

    signal = signal.SIGINT


class Keep(keras.callbacks.Callback):
    """Saves the run's state after each epoch and every ten minutes, and stops it when it goes wrong or is asked to.

    Args:
        folder: Directory of the run.
        variables: Dictionary of all that a snapshot holds, but for the metrics.
        progress: Dictionary with `epoch`, `step` (in it), `history` (a list of rows) and `best` (accuracy).
        steps: Steps an epoch.
        save_best: Function that writes the model to a path.
        metrics: Arrays of the metrics where the epoch was left, or an empty dictionary.
        save_steps: Steps between snapshots; `None` for every ten minutes.
        place: Where it trains. Several processes do together what one of them has to do.
    """

    def __init__(self, folder, variables, progress, steps, save_best, metrics=(), save_steps=None, place=ALONE):
        super().__init__()
        self.folder, self.variables, self.progress, self.steps = pathlib.Path(folder), variables, progress, steps
        self.save_best, self.metrics, self.save_steps, self.place = save_best, dict(metrics), save_steps, place
        self.asked = self.stop = 0  # number of the signal: of this process, and of all once they know
        self.signals = contextlib.ExitStack()

    def on_train_begin(self, logs=None):
        self.saved = time.monotonic()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.signals.callback(signal.signal, number, signal.signal(number, self._ask))

    def release(self):
        """Gives the signals back; `fit` does not call `on_train_end` after an error."""
        self.signals.close()

    def on_epoch_begin(self, epoch, logs=None):
        if self.metrics:
            some = keras.ops.zeros((1, self.model.output_shape[-1]))
            self.model.compute_metrics(None, some, some)  # makes the metrics' variables, whose values come next
            state.assign(self._metrics(), self.metrics)
            self.metrics = {}

    def on_train_batch_end(self, batch, logs=None):
        self.progress["step"] += 1
        if not math.isfinite(logs["loss"]):
            self._fail(f"loss became {logs['loss']}")
        due = self._due()
        if self.progress["step"] < self.steps:  # else the end of the epoch saves, and leaves
            if due or self.stop:
                self._save()
            if self.stop:
                self._leave()

    def on_epoch_end(self, epoch, logs=None):
        row = {"epoch": epoch, **{name: float(value) for name, value in logs.items()}}
        self.progress["history"].append(row)
        self.progress.update(epoch=epoch + 1, step=0)
        better = row["val_accuracy"] >= self.progress["best"]
        if better:
            self.progress["best"] = row["val_accuracy"]
            self.save_best(self.folder / rundir.BEST)
        self._save()
        if self.place.writes:
            append_row(self.folder, row)
        (self.stop,) = self.place.agree([self.asked])
        if self.stop:
            self._leave()

    def _due(self):
        step = self.progress["step"]
        due, late = self.save_steps and step % self.save_steps == 0, False
        if self.place.processes == 1 or step % TOGETHER == 0:
            late = self.save_steps is None and time.monotonic() - self.saved > SAVE_SECONDS
            self.stop, late = self.place.agree([self.asked, int(late)])
        return due or late

    def _metrics(self):
        return state.named(metrics=self.model.metrics_variables)

    def _save(self):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        middle = self.progress["step"] > 0
        arrays = state.values(self.variables | (self._metrics() if middle else {}))
        broken = next((k for k, a in arrays.items() if a.dtype.kind == "f" and not np.isfinite(a).all()), None)
        if broken:
            self._fail(f"values of {broken.split('/', 2)[2]} became NaN or infinite")
        if self.place.writes:
            state.save(self.folder, self._done(), arrays, self.progress)
        self.saved = time.monotonic()

    def _done(self):
        return self.progress["epoch"] * self.steps + self.progress["step"]

    def _fail(self, what):
        good = state.newest(self.folder)
        raise RuntimeError(
            f"The {what} in epoch {self.progress['epoch'] + 1}, step {self.progress['step']}, at a learning rate of "
            f"{learning_rate(self.model):g}. "
            + (f"The last good state is {str(good[2])!r}" if good else "No state was saved before")
            + "; a lower learning rate, a longer warm-up or a smaller optim.clip_norm may help."
        )

    def _ask(self, number, frame):
        if self.asked:  # a second time: at once
            raise KeyboardInterrupt
        self.asked = number

    def _leave(self):
        stopped = Stopped(
            f"Stopped after epoch {self.progress['epoch']}, step {self.progress['step']} of {self.steps}; all is saved "
            f"in {str(self.folder)!r}, and the same call goes on from there."
        )
        stopped.signal = self.stop
        raise stopped


class Average(keras.callbacks.Callback):
    """Evaluates with the moving average of the weights in their place.

    Keras's own `SwapEMAWeights` swaps by adding and subtracting, which rounds the weights each time.
    """

    def on_test_begin(self, logs=None):
        swap_average(self.model)

    def on_test_end(self, logs=None):
        swap_average(self.model)


class Pace(keras.callbacks.Callback):
    """Adds the learning rate, images a second and minutes left to what an epoch tells.

    Args:
        images: Images a step.
        steps: Steps of a whole epoch, of which a run that goes on may have fewer left.
        epochs: Epochs of the whole run.
    """

    def __init__(self, images, steps, epochs):
        super().__init__()
        self.images, self.steps, self.epochs = images, steps, epochs

    def on_epoch_begin(self, epoch, logs=None):
        self.begun, self.trained, self.count = time.monotonic(), None, 0

    def on_train_batch_end(self, batch, logs=None):
        self.trained, self.count = time.monotonic(), self.count + 1

    def on_epoch_end(self, epoch, logs=None):
        whole = (time.monotonic() - self.begun) * self.steps / self.count
        logs["learning_rate"] = learning_rate(self.model)
        logs["images_per_second"] = self.images * self.count / (self.trained - self.begun)
        logs["minutes_left"] = (self.epochs - epoch - 1) * whole / 60


def learning_rate(model):
    """Returns the learning rate of the step that is next."""
    return float(keras.ops.convert_to_numpy(optimizer_of(model).learning_rate))


def optimizer_of(model):
    """Returns the optimizer itself, without what scales the loss around it."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


@contextlib.contextmanager
def averaged(model):
    """A block in which a model has the moving average of its weights, if there is one."""
    swap_average(model)
    try:
        yield model
    finally:
        swap_average(model)


def swap_average(model):
    """Exchanges the weights and their moving average; nothing happens without one."""
    optimizer = optimizer_of(model) if getattr(model, "optimizer", None) else None
    for variable, average in ema_weights(optimizer) if optimizer else ():
        now = keras.ops.copy(variable.value)
        variable.assign(average)
        average.assign(now)


def write_history(folder, rows):
    """Writes `history.csv` anew: a resumed run has no row twice, and none of an epoch that was lost."""
    with files.replacing(pathlib.Path(folder) / rundir.HISTORY) as path:
        path.touch()
        for row in rows:
            _append(path, row)


def append_row(folder, row):
    """Adds a line to `history.csv`."""
    _append(pathlib.Path(folder) / rundir.HISTORY, row)


def _append(path, row):
    new = not path.exists() or not path.stat().st_size
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)
