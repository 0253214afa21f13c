"""Progress of long work, on one line."""

import sys

from tqdm import tqdm


class Line(tqdm):
    """A line of parts, each whole or left out: those that are known, and of them those that fit the terminal.

    Args:
        parts: Pairs of a text, or a function from tqdm's numbers to a text or `None`, and its rank, as in `fitted`.
        together: What is between two parts.
        end: What ends the line.
        **settings: Arguments of `tqdm`.
    """

    def __init__(self, parts, together, end, **settings):
        self.parts = parts
        self.together = together
        self.end = end
        super().__init__(**settings)

    def __str__(self):
        numbers = self.format_dict
        told = [(part(numbers) if callable(part) else part, rank) for part, rank in self.parts]
        return fitted([(part, rank) for part, rank in told if part], numbers["ncols"], self.together) + self.end


def fitted(parts, width, together="  "):
    """Returns parts of a line in one text: the most important first as many as fit, in their order.

    Args:
        parts: Pairs of a text and its rank; that of rank 0 is cut where it alone is too long.
        width: Characters of the line; `None` for any number.
        together: What is between two parts.
    """
    width = float("inf") if width is None else width
    kept = []
    for i in sorted(range(len(parts)), key=lambda i: parts[i][1]):
        if sum(len(parts[k][0]) + len(together) for k in kept) + len(parts[i][0]) <= width or not parts[i][1]:
            kept.append(i)
    text = together.join(parts[i][0] for i in sorted(kept))
    return text if len(text) <= width else text[:width]


def remaining(numbers):
    """Returns the time left of a line, such as `"02:10 left"`, or `None` as long as it is not known."""
    speed = _speed(numbers)
    return f"{tqdm.format_interval((numbers['total'] - numbers['n']) / speed)} left" if speed else None


def pace(numbers):
    """Returns the speed of a line, such as `"2,310 images/s"`, or `None` as long as it is not known."""
    speed = _speed(numbers)
    return f"{speed:,.{0 if speed >= 100 else 2}f}{numbers['unit']}/s" if speed else None


def _speed(numbers):
    """Returns units a second since the beginning; 0 if there was none."""
    seconds = numbers["elapsed"]
    return max(numbers["n"] - numbers["initial"], 0) / seconds if seconds > 0 else 0


def line(total, parts, after=0.0, stream=None, together="  ", **settings):
    """Returns a line of tqdm: updated in place on a terminal; elsewhere, at most one line in ten seconds.

    Of what `after` waits for, the first line comes then, in a log too.

    Args:
        total: Number of all steps.
        parts: As in `Line`.
        after: Seconds before anything is shown.
        stream: Text stream; what `sys.stdout` is now if `None`.
        together: As in `Line`.
        **settings: More arguments of `tqdm`.
    """
    stream = sys.stdout if stream is None else stream
    live = getattr(stream, "isatty", bool)()  # what replaces stdout may have none
    how = {"mininterval": 0.1 if live else 10.0, "dynamic_ncols": live, "miniters": 1, "smoothing": 0}
    output, end = (stream, "") if live else (Log(stream), "\n")
    bar = Line(parts, together, end, total=total, delay=after, file=output, disable=False, **how, **settings)
    if after:
        bar.last_print_t += after - how["mininterval"]
    return bar


def moment(bar):
    """Returns the time by the clock of a line, in seconds."""
    return bar.start_t + bar.format_dict["elapsed"]


def say(text):
    """Prints a line to standard error, above the line of progress if there is one."""
    tqdm.write(text, file=sys.stderr)


class Log:
    """A stream of whole lines: without what moves a terminal's cursor."""

    def __init__(self, stream):
        self.stream = stream
        self.flush = stream.flush

    def write(self, text):
        if text.strip():
            self.stream.write(text.strip(" \r"))


def counted(batches, total, what="images", after=1.0, stream=None):
    """Yields batches, and shows on one line the number of images done and the time left; removes it at the end.

    The line goes to standard error, so that answers which a program prints may be sent to a file.

    Args:
        batches: Iterable of batches, or of dictionaries with a batch of `"images"`.
        total: Number of all images.
        what: What the line begins with.
        after: Seconds before it is shown.
        stream: Text stream; what `sys.stderr` is now if `None`.
    """
    stream = sys.stderr if stream is None else stream
    parts = [(lambda numbers: f"{what}: {numbers['n']:,} of {total:,}", 0), (remaining, 1)]
    with line(total, parts, after, stream, ", ", leave=False) as bar:
        for batch in batches:
            yield batch
            bar.update(len(batch["images"] if isinstance(batch, dict) else batch))


def passing(items, text, after=1.0, stream=None, every=1):
    """Yields items, however many there are, and shows on one line how many were; removes it at the end.

    Args:
        items: Iterable.
        text: What is shown, with `{n}` for the number of items.
        after: Seconds before it is shown.
        stream: As in `counted`.
        every: Items between two updates: of quick ones, each would take longer than the item.
    """
    stream = sys.stderr if stream is None else stream
    parts = [(lambda numbers: text.format(n=numbers["n"]), 0)]
    with line(None, parts, after, stream, leave=False) as bar:
        for number, item in enumerate(items, 1):
            yield item
            if number % every == 0:
                bar.update(every)
