"""Values as error messages show them."""

import reprlib

import numpy as np


class _Short(reprlib.Repr):
    """Python's short form of a value, in which an array is its shape and type."""

    def repr1(self, x, level):
        if not isinstance(x, type) and hasattr(x, "shape") and hasattr(x, "dtype"):
            shape = tuple(x.shape)
            return f"an array of shape {shape}, {getattr(x.dtype, 'name', x.dtype)}" if shape else repr(plain(x))
        rows = isinstance(x, (list, tuple)) and all(isinstance(each, (list, tuple)) for each in x)
        if rows and sum(map(len, x)) > 12:  # what was an array
            return f"{len(x)} lists"
        return super().repr1(x, level)


def shown(value):
    """Returns a value as an error message shows it: short, and an array or a tensor without its numbers."""
    short = _Short()
    short.maxlist = short.maxtuple = short.maxdict = short.maxset = 12
    short.maxstring = short.maxother = 200
    return short.repr(value)


def plain(value):
    """Returns a value with Python's numbers and lists in place of NumPy's, also inside lists and dictionaries."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
