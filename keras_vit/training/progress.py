"""Progress of a run, on one line."""

import contextlib

import keras

from keras_vit.utils.metrics import told, written
from keras_vit.utils.progress import line, moment, pace, remaining


@contextlib.contextmanager
def shown(run, verbose):
    """A block that shows the progress of a run; it yields a list of callbacks, and Keras's own `verbose`.

    Args:
        run: A `Run`.
        verbose: `"auto"` for one line for the whole run, else Keras's.
    """
    if not run.place.writes:
        yield [], 0
    elif verbose == "auto":
        with RunProgress(run) as progress:
            yield [progress], 0
    else:
        try:
            yield [], verbose
        except BaseException:
            if verbose == 1:
                print()  # Keras ends the line of its bar only at the end of an epoch
            raise


class RunProgress(keras.callbacks.Callback):
    """Shows the progress of a whole run on one line, over all its epochs; a context manager.

    Speed and time left are averages since the first step, validation included. Scores are means over the epoch so far.
    In a log a line comes at the end of an epoch, of short ones at one end in ten seconds; and every ten seconds within
    an epoch, but not after its first batch.
    """

    def __init__(self, run):
        super().__init__()
        self.run = run
        self.epochs = run.recipe.optim.epochs
        self.steps = run.steps
        self.images = run.recipe.data.batch_size
        self.column = run.task.best[0]
        self.line = self.validation = None
        self.shown = 0.0  # when the scores of a whole epoch were shown
        self.logs = {}
        self.compiled = False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.line is not None:
            self.line.close()

    def on_train_begin(self, logs=None):
        if self.line is None:
            total, steps_before = self.epochs * self.steps, self.run.epoch * self.steps + self.run.step
            begun = f"epoch {self.run.epoch + 1}/{self.epochs}  compiling"
            # in images: tqdm's `unit_scale` does not scale `initial`, and a resumed run would seem much faster
            self.line = line(total * self.images, [(begun, 0)], initial=steps_before * self.images, unit=" images")

    def on_train_batch_end(self, batch, logs=None):
        if not self.compiled:
            self.compiled = True
            self.line.unpause()  # the first step compiles: it does not count
            self.shown = self.line.last_print_t
            self.line.initial += self.images
        elif batch == 0:
            self.line.last_print_t = moment(self.line)  # one batch says little: nothing is printed for a while
        self._show(logs, coming=1)
        self.line.update(self.images)

    def on_test_begin(self, logs=None):
        self._show(self.logs, "validating")

    def on_epoch_end(self, epoch, logs=None):
        self.validation = (logs or {}).get(self.column)
        self._show(logs)
        if epoch + 1 < self.epochs and moment(self.line) - self.shown >= self.line.mininterval:
            self.line.refresh()  # the last epoch's line is written when it is closed
            self.shown = moment(self.line)

    def _show(self, logs, more="", coming=0):
        """Sets the text after a step; on a narrow terminal the parts of the highest ranks are left out."""
        step = self.line.n // self.images + coming
        self.logs = logs or {}
        score = self.column.removeprefix("val_")
        numbers = [("loss", self.logs.get("loss"), 4), (score, self.logs.get(score), 5), (score, self.validation, 3)]
        numbers = numbers if score != "loss" else [numbers[0], numbers[2]]
        parts = [(f"epoch {max(step - 1, 0) // self.steps + 1}/{self.epochs}", 0)]
        for name, value, rank in numbers:
            if value is not None:
                text = told(self.run.task.titled(name), written(name, value))
                parts.append((f"validation {text}" if rank == 3 else text, rank))
        self.line.parts = [*parts, (more, 1), (remaining, 2), (pace, 6)]
        if more and self.line.dynamic_ncols:
            self.line.refresh()
