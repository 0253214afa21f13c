"""Progress of a run, on one line."""

import contextlib

import keras

from keras_vit.utils.metrics import written
from keras_vit.utils.progress import line, moment


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
            total, done = self.epochs * self.steps, self.run.epoch * self.steps + self.run.step
            begun = f"epoch {self.run.epoch + 1}/{self.epochs}  compiling"
            text = "{desc}  {remaining} left  {rate_noinv_fmt}"
            # in images: tqdm's `unit_scale` does not scale `initial`, and a resumed run would seem much faster
            self.line = line(total * self.images, text, desc=begun, initial=done * self.images, unit=" images")

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
        self._show(self.logs, "  validating")

    def on_epoch_end(self, epoch, logs=None):
        self.validation = (logs or {}).get(self.column)
        self._show(logs)
        if epoch + 1 < self.epochs and moment(self.line) - self.shown >= self.line.mininterval:
            self.line.refresh()  # the last epoch's line is written when it is closed
            self.shown = moment(self.line)

    def _show(self, logs, more="", coming=0):
        """Sets the text after a step, the most important first: a narrow terminal cuts the rest off."""
        step = self.line.n // self.images + coming
        self.logs = logs or {}
        name = self.column.removeprefix("val_")
        numbers = {"loss": self.logs.get("loss"), name: self.logs.get(name), "validation": self.validation}
        words = [f"epoch {max(step - 1, 0) // self.steps + 1}/{self.epochs}"]
        for key, value in numbers.items():
            if value is not None:
                words.append(f"{key.replace('_', ' ')} {written(name if key == 'validation' else key, value)}")
        self.line.set_description_str("  ".join(words) + more, refresh=bool(more) and self.line.dynamic_ncols)
