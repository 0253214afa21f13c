"""Progress of a run, on one line."""

import contextlib
import math
import time

import keras

from keras_vit.utils.metrics import written
from keras_vit.utils.progress import Line, duration

FEW = 20  # epochs that get a line each, where the output is no terminal


@contextlib.contextmanager
def shown(run, verbose):
    """A block that shows the progress of a run; it yields a list of callbacks, and Keras's own `verbose`.

    Args:
        run: A `Run`.
        verbose: `"auto"` for one line for the whole run, else Keras's.
    """
    line = Line()
    if not run.place.writes:
        yield [], 0
        return
    try:
        yield ([RunProgress(run, line)], 0) if verbose == "auto" else ([], verbose)
    except BaseException:
        if verbose == 1:
            print()  # Keras ends the line of its bar only at the end of an epoch
        raise
    finally:
        line.end()


class RunProgress(keras.callbacks.Callback):
    """Shows the progress of a whole run on one line, over all its epochs.

    Args:
        run: A `Run`.
        line: A `Line`.
    """

    def __init__(self, run, line):
        super().__init__()
        self.run = run
        self.line = line
        self.epochs = run.recipe.optim.epochs
        self.steps = run.steps
        self.images = run.recipe.data.batch_size
        self.begun = self.validation = None
        self.column = run.task.best[0]

    def on_train_begin(self, logs=None):
        self.done = self.run.epoch * self.steps + self.run.step  # of the whole run
        if self.begun is None:
            self.line.show(f"epoch {self.done // self.steps + 1}/{self.epochs}  compiling", plain=math.inf)

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        now = time.monotonic()
        if self.begun is None:  # after the first step, which compiles
            self.begun = now
            self.before = self.done
            self.measuring = 0.0
        self.logs = logs or {}
        self.line.show(self._text(now), plain=60.0)

    def on_test_begin(self, logs=None):
        self.test_begun = time.monotonic()

    def on_test_batch_end(self, batch, logs=None):
        self.line.show(self._text(self.test_begun, f"validating: batch {batch + 1:,}"), plain=math.inf)

    def on_test_end(self, logs=None):
        if self.begun is not None:
            self.measuring += time.monotonic() - self.test_begun

    def on_epoch_end(self, epoch, logs=None):
        self.logs = logs or {}
        self.validation = self.logs.get(self.column)
        each = self.epochs <= FEW or self.done >= self.epochs * self.steps
        self.line.show(self._text(time.monotonic()), every=0.0, plain=0.0 if each else 10.0)

    def _text(self, now, more=""):
        """Returns what is known, the most important first: a narrow terminal cuts the rest off."""
        epoch = max(self.done - 1, 0) // self.steps
        text = f"epoch {epoch + 1}/{self.epochs} {self.done / self.steps - epoch:.0%}"
        name = self.column.removeprefix("val_")
        numbers = {"loss": self.logs.get("loss"), name: self.logs.get(name), "validation": self.validation}
        for key, value in numbers.items():
            if value is not None:
                score = name if key == "validation" else key
                text += f"  {key.replace('_', ' ')} {written(score, value)}"
        steps = self.done - self.before
        if not steps or now <= self.begun:
            return f"{text}  {more}".rstrip()
        left = (self.epochs * self.steps - self.done) * (now - self.begun) / steps
        speed = self.images * steps / max(now - self.begun - self.measuring, 1e-9)
        return f"{text}  {duration(left)} left  {more or f'{speed:,.0f} images/s'}"
