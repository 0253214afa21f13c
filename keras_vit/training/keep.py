"""Callbacks that keep a run's training state and its best model on disk."""

import math
import time

import keras
import numpy as np

from keras_vit.training import history, rundir, state
from keras_vit.training.devices import TOGETHER
from keras_vit.training.saving import save_trained
from keras_vit.training.stopping import diverged

SAVE_SECONDS = 600.0


class KeepState(keras.callbacks.Callback):
    """Saves the training state after each epoch and every ten minutes, or every `save_steps`, and restores it.

    Args:
        run: A `Run`, whose progress it counts.
        learner: The model that is fitted.
        save_steps: Steps between training states within an epoch; `None` for every ten minutes.
    """

    def __init__(self, run, learner, save_steps=None):
        super().__init__()
        self.run = run
        self.save_steps = save_steps
        self.metrics = {}
        groups = {"model": run.model.variables, "learner": run.own_variables()}  # a teacher's do not change
        self.variables = state.named(**groups, optimizer=learner.optimizer.variables)

    def restore(self):
        """Restores all variables and the run's progress from the newest training state, if there is one."""
        newest = state.newest_for_all(self.run.folder, self.run.place)
        if newest is not None:
            arrays, progress, path = newest
            if progress.pop("run", self.run.mark) != self.run.mark:
                raise ValueError(
                    f"{str(path)!r} is the training state of another run, of another recipe or data. "
                    "Delete it, or move it back."
                )
            self.metrics = {name: array for name, array in arrays.items() if name.startswith("metrics/")}
            state.assign(self.variables, {k: array for k, array in arrays.items() if k not in self.metrics})
            for name, value in progress.items():
                setattr(self.run, name, value)
        if self.run.place.writes:
            history.rewrite(self.run.folder, self.run.history)

    def on_train_begin(self, logs=None):
        self.saved = time.monotonic()

    def on_epoch_begin(self, epoch, logs=None):
        if self.metrics:
            x, y = keras.tree.map_structure(_symbol, self.run.training_batches().element_spec[:2])
            y, outputs = keras.tree.map_structure(_zeros, (y, self.model.compute_output_spec(x)))
            self.model.compute_metrics(None, y, outputs)  # creates the metrics' variables
            state.assign(self._metrics(), self.metrics)
            self.metrics = {}

    def on_train_batch_end(self, batch, logs=None):
        self.run.step += 1
        if self.run.step < self.run.steps and self._due():  # `on_epoch_end` saves after the last step
            self.save()

    def on_epoch_end(self, epoch, logs=None):
        arrays = self._arrays(self.variables)
        row = {"epoch": epoch, **{name: float(value) for name, value in logs.items()}}
        self.run.history.append(row)
        self.run.epoch = epoch + 1
        self.run.step = 0
        self.run.ended = bool(self.model.stop_training)
        self._write(arrays)
        if self.run.place.writes:
            history.rewrite(self.run.folder, self.run.history)

    def save(self):
        """Saves the training state within an epoch.

        Raises:
            RuntimeError: If a value became NaN or infinite; nothing is written then.
            OSError: If it cannot be written.
        """
        self._write(self._arrays(self.variables | self._metrics()))

    def _arrays(self, variables):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        arrays = state.values(variables)
        broken = next((k for k, a in arrays.items() if a.dtype.kind == "f" and not np.isfinite(a).all()), None)
        if broken:
            raise diverged(self.run, self.model, f"values of {broken.split('/', 2)[2]} became NaN or infinite")
        return arrays

    def _write(self, arrays):
        if self.run.place.writes:
            step = self.run.epoch * self.run.steps + self.run.step
            state.save(self.run.folder, step, arrays, self.run.progress | {"run": self.run.mark})
        self.saved = time.monotonic()

    def _due(self):
        if self.save_steps is not None:
            return self.run.step % self.save_steps == 0
        place = self.run.place
        if place.processes > 1 and self.run.step % TOGETHER:
            return False
        (late,) = place.agree([int(time.monotonic() - self.saved > SAVE_SECONDS)])
        return bool(late)

    def _metrics(self):
        return state.named(metrics=self.model.metrics_variables)


def _symbol(spec):
    """Returns a batch of one without values."""
    return keras.KerasTensor((1, *spec.shape[1:]), spec.dtype.name)


def _zeros(tensor):
    return keras.ops.zeros(tensor.shape, tensor.dtype)


class KeepBest(keras.callbacks.Callback):
    """Writes `best.keras` after each epoch that is at least as good as the best so far, by the task's `best`.

    With `optim.patience` it ends the run after this number of epochs without a better one.

    Args:
        run: A `Run`.
        learner: The model that is fitted, whose EMA weights are written if it has any.
    """

    def __init__(self, run, learner):
        super().__init__()
        self.run = run
        self.learner = learner

    def on_epoch_end(self, epoch, logs=None):
        column, better = self.run.task.best
        if column not in logs:
            raise ValueError(
                f"{type(self.run.task).__name__}.best must be a column of {', '.join(logs)}. Received: {column!r}"
            )
        value, sign = float(logs[column]), 1 if better == "max" else -1
        if math.isfinite(logs["val_loss"] + value) and (self.run.best is None or sign * value >= sign * self.run.best):
            self.run.best = value
            save_trained(self.learner, self.run.model, self.run.folder / rundir.BEST, self.run.place.writes)
        patience = self.run.recipe.optim.patience
        if patience and history.since_best([*self.run.history, logs], column, better) >= patience:
            self.model.stop_training = True
