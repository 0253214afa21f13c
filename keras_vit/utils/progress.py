"""Progress of long work, on one line."""

import math
import shutil
import sys
import time


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
        self.next = now + after
        self.last = -math.inf if self.live else now
        self.width = 0

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
