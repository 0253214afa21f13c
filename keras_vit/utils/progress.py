"""Progress of long work, on one line."""

import sys

from tqdm import tqdm


def line(total, text, after=0.0, stream=None, **settings):
    """Returns a line of tqdm: updated in place on a terminal; elsewhere, at most one line in ten seconds.

    Of what `after` waits for, the first line comes then, in a log too.

    Args:
        total: Number of all steps.
        text: What is shown, with tqdm's fields.
        after: Seconds before anything is shown.
        stream: Text stream; what `sys.stdout` is now if `None`.
        **settings: More arguments of `tqdm`.
    """
    stream = sys.stdout if stream is None else stream
    live = getattr(stream, "isatty", bool)()  # what replaces stdout may have none
    how = {"mininterval": 0.1 if live else 10.0, "dynamic_ncols": live, "miniters": 1, "smoothing": 0}
    end = "{bar:0}" if live else "\n"  # a bar, even an empty one, makes tqdm cut the text at the terminal's width
    shown = stream if live else Log(stream)
    found = tqdm(total=total, bar_format=text + end, delay=after, file=shown, disable=False, **how, **settings)
    if after:
        found.last_print_t += after - how["mininterval"]
    return found


def moment(shown):
    """Returns the time by the clock of a line, in seconds."""
    return shown.start_t + shown.format_dict["elapsed"]


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
    with line(total, what + ": {n:,} of {total:,}, {remaining} left", after, stream, leave=False) as shown:
        for batch in batches:
            yield batch
            shown.update(len(batch["images"] if isinstance(batch, dict) else batch))


def passing(items, text, after=1.0, stream=None, every=1):
    """Yields items, however many there are, and shows on one line how many were; removes it at the end.

    Args:
        items: Iterable.
        text: As in `line`.
        after: Seconds before it is shown.
        stream: As in `counted`.
        every: Items between two updates: of quick ones, each would take longer than the item.
    """
    stream = sys.stderr if stream is None else stream
    with line(None, text, after, stream, leave=False) as shown:
        for number, item in enumerate(items, 1):
            yield item
            if number % every == 0:
                shown.update(every)
