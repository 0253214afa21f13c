"""Warnings, attributed to the caller's own line; a library prints nothing."""

import inspect
import warnings


class LeftOut(UserWarning):
    """Warns of files, or of parts of them, that are not used."""


def warn(text, category=UserWarning):
    """Warns the first caller outside the package."""
    frame, level = inspect.currentframe().f_back, 2
    while frame and frame.f_globals.get("__name__", "").startswith("keras_vit."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def left_out(what, faults=()):
    """Warns of what is left out, such as `"3 of 9 images, which cannot be read"`, and names the first faults."""
    warn(":\n  ".join([f"Left out {what}", *[named(faults)] * bool(faults)]), LeftOut)


def named(faults, most=10):
    """Returns the first faults, one a line, and how many more there are."""
    return "\n  ".join([*faults[:most], *[f"and {len(faults) - most} more"] * (len(faults) > most)])
