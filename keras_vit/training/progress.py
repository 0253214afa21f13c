"""Progress of long work, on one line."""

import contextlib
import math
import shutil
import sys
import time

import keras

from keras_vit.metrics import written

FEW = 20  # epochs that get a line each, where the output is no terminal


class Line:
    """A line of text: updated in place on a terminal, written now and then where the output is a file or a notebook.

    Args:
        after: Seconds before the first text is shown.
        stream: Text stream; what `sys.stdout` is now if `None`.
    """

    def __init__(self, after=0.0, stream=None):
        self.stream = sys.stdout if stream is None else stream
        self.live = getattr(self.stream, "isatty", bool)()  # what replaces stdout may have none
        now = time.monotonic()
        self.next, self.last, self.width = now + after, -math.inf if self.live else now, 0

    def show(self, text, every=0.1, plain=10.0):
        """Shows a text, unless it is too early.

        Args:
            text: One line; what is wider than the terminal is cut off.
            every: Seconds since the last text, on a terminal.
            plain: Seconds since the last text elsewhere, where each is a line of its own.
        """
        now = time.monotonic()
        if now < self.next or now - self.last < (every if self.live else plain):
            return
        self.last = now
        if self.live:
            columns = max(shutil.get_terminal_size().columns - 1, 1)  # the last one would wrap on some
            self.stream.write("\r" + text[:columns].ljust(min(self.width, columns)))
            self.width = len(text[:columns])
        else:
            self.stream.write(f"{text}\n")
        self.stream.flush()

    def end(self):
        """Leaves what is shown where it is, and begins a new line."""
        self._leave("\n")

    def clear(self):
        """Takes away what is shown on a terminal."""
        self._leave("\r" + " " * self.width + "\r")

    def _leave(self, text):
        if self.width:
            self.stream.write(text)
            self.stream.flush()
        self.width = 0


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
        self.run, self.line = run, line
        self.epochs, self.steps, self.images = run.recipe.optim.epochs, run.steps, run.recipe.data.batch_size
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
            self.begun, self.before, self.measuring = now, self.done, 0.0
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


def counted(batches, total, what="images", after=1.0, stream=None):
    """Yields batches, and shows on one line the number of images done and the time left.

    Nothing is shown within the first second, or the first ten where the output is no terminal. The line is
    removed at the end.

    Args:
        batches: Iterable of batches, or of dictionaries with a batch of `"images"`.
        total: Number of all images.
        what: What the line begins with.
        after: Seconds before it is shown on a terminal.
        stream: As in `Line`.

    Example:

    >>> for examples in counted(batches, 10_000, "evaluating"):
    ...     model.predict_on_batch(examples["images"])
    """
    line, done, begun = Line(after, stream), 0, time.monotonic()
    try:
        for batch in batches:
            yield batch
            done += len(batch["images"] if isinstance(batch, dict) else batch)
            left = (time.monotonic() - begun) / max(done, 1) * (total - done)
            line.show(f"{what}: {done:,} of {total:,}, {duration(left)} left")
    finally:
        line.clear()


def duration(seconds):
    """Returns a time such as `"0:07"` or `"2:03:09"`."""
    minutes, seconds = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
