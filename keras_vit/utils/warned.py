"""Warnings, attributed to the caller's own line; a library prints nothing."""

import inspect
import warnings

MOST = 10  # faults that are named


class LeftOut(UserWarning):
    """Warns of files, or of parts of them, that are not used."""


def warn(text, category=UserWarning):
    """Warns the first caller outside the package."""
    frame, level = inspect.currentframe().f_back, 2
    while frame and frame.f_globals.get("__name__", "").startswith("keras_vit."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def left_out(what, faults=(), count=None):
    """Warns of what is left out, such as `"3 of 9 images, which cannot be read"`, and names the first faults."""
    warn(f"Left out {what}:\n  {named(faults, count)}" if faults else f"Left out {what}", LeftOut)


def refuse_or_leave_out(bad, count, what, on_bad, why="cannot be read"):
    """Raises ValueError for bad files, or warns that they are left out.

    Args:
        bad: Names of the bad ones, each with its fault in brackets; none is no error.
        count: Of all.
        what: Such as `"images"`.
        on_bad: `Data.bad_images`; if all are bad, it is an error with `"skip"` too.
        why: What is wrong with them.
    """
    if bad and (on_bad == "raise" or len(bad) == count):
        raise ValueError(
            f"{len(bad)} of {count} {what} {why}. Repair or remove them, or leave them out with "
            f"data.bad_images=skip:\n  {named(bad)}"
        )
    if bad:
        left_out(f"{len(bad)} of {count} {what}, which {why}", bad)


def named(faults, count=None):
    """Returns the first faults, one a line, and how many more there are of `count`, by default of all given."""
    more = (count or len(faults)) - MOST
    lines = faults[:MOST]
    return "\n  ".join([*lines, f"and {more} more"] if more > 0 else lines)


def quoted(names):
    """Returns names in quotes, the first of a list, and how many more there are."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(map(repr, names[:MOST])) + more
