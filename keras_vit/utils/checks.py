"""Clear errors for bad input, raised before any work is done."""

import difflib
import math
import os
import pathlib
from collections.abc import Hashable

import numpy as np

from keras_vit.utils.shown import plain as plain
from keras_vit.utils.shown import shown as shown


def near(word, words):
    """Returns which of `words` are spelled like `word`, such as `Did you mean 'optim.epochs'?`, or a list of all."""
    words = [str(w) for w in words]
    close = [w for w in words if w.lower() == str(word).lower()]
    close = close or difflib.get_close_matches(str(word), words, n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(repr(c) for c in close)}?"
    more = f" and {len(words) - 50} more" if len(words) > 50 else ""
    return f"Known: {', '.join(words[:50])}{more}." if words else "None is known."


def pair_of(arrays):
    """Returns arrays that are a pair `(images, labels)`; raises ValueError for anything else."""
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 2:
        raise ValueError(f"Arrays must be a pair (images, labels). Received: {type(arrays).__name__}")
    return arrays


def pair(name, value):
    """Returns `(height, width)` from a positive integer or a pair of them; raises ValueError for anything else."""
    values = (value, value) if isinstance(value, (int, np.integer)) else value
    if (
        not isinstance(values, (tuple, list))
        or len(values) != 2
        or any(isinstance(v, bool) or not isinstance(v, (int, np.integer)) or v < 1 for v in values)
    ):
        raise ValueError(f"`{name}` must be a positive integer or (height, width). Received: {name}={shown(value)}")
    return int(values[0]), int(values[1])


def positive(**values):
    """Raises unless every value is an integer of at least 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={shown(value)}")


def heads_and_hidden(num_heads, mlp_dim):
    """Raises unless both are positive integers in this order: others take the width first, or the heads last."""
    positive(num_heads=num_heads, mlp_dim=mlp_dim)
    if mlp_dim < num_heads:
        raise ValueError(
            "`mlp_dim`, the hidden channels of the MLP, must be at least `num_heads`, which comes first; the width is "
            f"read off the input. Received: num_heads={num_heads}, mlp_dim={mlp_dim}"
        )


def whole(**values):
    """Raises unless every value is an integer of at least 0."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"`{name}` must be an integer, 0 or more. Received: {name}={shown(value)}")


def rate(**values):
    """Raises unless every value is a number in [0, 1)."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0 <= value < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {name}={shown(value)}")


def not_negative(**values):
    """Raises unless every value is a finite number of at least 0."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0 <= value < math.inf:
            raise ValueError(f"`{name}` must be a finite number, 0 or more. Received: {name}={shown(value)}")


def above_zero(**values):
    """Raises unless every value is a finite number above 0."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a finite number above 0. Received: {name}={shown(value)}")


def number(**values):
    """Raises unless every value is a finite number."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not math.isfinite(value):
            raise ValueError(f"`{name}` must be a finite number. Received: {name}={shown(value)}")


def switch(**values):
    """Raises unless every value is `True` or `False`: a string such as "False" would count as true."""
    for name, value in values.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"`{name}` must be True or False. Received: {name}={shown(value)}")


def sequence(name, value):
    """Returns a list or tuple as a tuple; raises ValueError for anything else."""
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"`{name}` must be a list or tuple. Received: {name}={shown(value)}")
    return tuple(value)


def options(name, value, keys):
    """Raises unless a value is a dictionary with known keys only."""
    if not isinstance(value, dict) or not set(value) <= set(keys):
        raise ValueError(f"`{name}` must be a dictionary with keys among {', '.join(keys)}. Received: {shown(value)}")


def path(name, value):
    """Returns a path as a `pathlib.Path`, `~` replaced; raises TypeError for anything else."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value) or "\0" in os.fspath(value):
        raise TypeError(f"`{name}` must be a path. Received: {name}={shown(value)}")
    return pathlib.Path(os.path.expanduser(value))  # unlike pathlib's, it leaves a name like "~draft" as it is


def model(value, name="model"):
    """Raises TypeError unless `value` is a Keras model."""
    import keras

    if not isinstance(value, keras.Model):
        raise TypeError(f"`{name}` must be a Keras model. Received: {name}={shown(value)}")


def one_of(name, value, allowed, equals=()):
    """Raises unless `value` is in `allowed`; `equals` are the words for it there, if it is another library's."""
    if getattr(value, "shape", ()) or not isinstance(value, Hashable) or value not in tuple(allowed):
        choices, here = ", ".join(map(repr, allowed)), "".join(f", which is {each!r} here" for each in equals)
        raise ValueError(f"`{name}` must be one of {choices}. Received: {name}={shown(value)}{here}")


BYTES = (0, 255)  # the range of pixels, unless a model states another


def pixels(values, shape=None, name="images", value_range=BYTES):
    """Checks a batch of pixels.

    Args:
        values: Array, `(batch, height, width, channels)`, integers or floats.
        shape: The `(height, width, channels)` that the model takes; a `None` entry matches any size.
        value_range: The lowest and the highest pixel; `None`, or a range with numbers for each band, for any finite
            numbers.

    Returns:
        `values` as a NumPy array.

    Raises:
        ValueError: For a wrong rank, shape or dtype, an empty batch, or values outside the range or scaled to 0..1.
    """
    values = batch(values, shape, name)
    low, high = float(values.min()), float(values.max())
    any_number = value_range is None or np.ndim(value_range) == 2  # what is outside of a band's own range is clipped
    least, most = (-np.inf, np.inf) if any_number else value_range
    if any_number and not np.isfinite([low, high]).all():
        raise ValueError(f"`{name}` must contain finite numbers. Received: values from {low:g} to {high:g}")
    rule, received = f"`{name}` must contain pixels from {least:g} to {most:g}", f"values from {low:g} to {high:g}"
    if not (low >= least and high <= most):  # written so that NaN fails too
        others = ", or in the `value_range` that a model is built with" if value_range == BYTES else ""
        raise ValueError(f"{rule}{others}. Received: {received}")
    if values.dtype.kind == "f" and least == 0 < high <= 1 < most and (values % 1).any():  # whole numbers: dark
        raise ValueError(f"{rule}: the model rescales them itself. Received: {received}; multiply by {most:g}")
    return values


def batch(values, shape=None, name="images"):
    """Checks a batch of images like `pixels`, except for the values."""
    try:
        values = np.asarray(values)
    except ValueError:  # of images of several sizes, or of several inputs
        raise ValueError(f"`{name}` must be one array. Received: {shown(values)}") from None
    if values.ndim != 4 or not len(values):
        raise ValueError(
            f"`{name}` must have the shape (batch, height, width, channels). Received: shape={values.shape}"
        )
    if values.dtype.kind not in "uif":
        raise ValueError(f"`{name}` must contain integers or floats. Received: dtype={values.dtype}")
    if shape is not None and any(want not in (None, got) for want, got in zip(shape, values.shape[1:])):
        raise ValueError(
            f"`{name}` must have the shape that the model takes, (batch, {', '.join(str(s) for s in shape)}). "
            f"Received: shape={values.shape}"
        )
    return values


def targets(values, num_classes, count=None, name="labels"):
    """Checks the labels of a classifier: class indices, or a number from 0 to 1 for each class.

    Args:
        values: Array; see `check_data`.
        num_classes: Number of the model's logits.
        count: The number of images, if known.
        name: The argument's name, for error messages.

    Returns:
        `values` as a NumPy array.

    Raises:
        ValueError: For a wrong shape, type or range.
    """
    array = np.asarray(values)
    if num_classes > 1 and array.shape[1:] in ((), (1,)):
        return class_indices(array, num_classes, count, name)
    shape = f"(batch,), integers, or (batch, {num_classes}), 0..1" if num_classes > 1 else "(batch,) or (batch, 1)"
    array = rows(array, num_classes, count, name, f"have the shape {shape}")
    low, high = (float(array.min()), float(array.max())) if array.size else (0, 0)
    if not (low >= 0 and high <= 1):  # written so that NaN fails too
        raise ValueError(f"`{name}` must be from 0 to 1 for each logit. Received: values from {low:g} to {high:g}")
    return array


def rows(values, size, count, name, rule):
    """Returns numbers of shape `(batch, size)`, of one number also `(batch,)`, as an array.

    Raises:
        ValueError: With what the argument `name` must be, `rule`, for others; or if they are not `count`.
    """
    array = np.asarray(values)
    shapes = [(size,)] if size > 1 else [(), (1,)]
    if array.shape[1:] not in shapes or not array.ndim or array.dtype.kind not in "buif":
        raise ValueError(f"`{name}` must {rule}. Received: shape={array.shape}, dtype={array.dtype}")
    _as_many(array, count, name)
    return array


def class_indices(values, num_classes, count=None, name="labels"):
    """Checks a vector of class indices. Under XLA an index outside the classes silently makes the loss NaN.

    Args:
        values: Array, `(batch,)` or `(batch, 1)`, of integers.
        num_classes: Number of classes of the model.
        count: The number of images, if known.
        name: The argument's name, for error messages.

    Returns:
        `values` as a NumPy array, `(batch,)`.

    Raises:
        ValueError: For a wrong rank, dtype or count, or an index outside the classes.
    """
    values = np.asarray(values)
    if values.shape[1:] not in ((), (1,)) or not values.ndim or values.dtype.kind not in "ui":
        raise ValueError(f"`{name}` must be a vector of integers. Received: shape={values.shape}, dtype={values.dtype}")
    values = values.reshape(-1)
    _as_many(values, count, name)
    outside = values[(values < 0) | (values >= num_classes)]
    if len(outside):
        raise ValueError(
            f"`{name}` must be class indices from 0 to {num_classes - 1}. Received: {len(outside)} outside, "
            f"such as {sorted(set(outside.tolist()))[:5]}"
        )
    return values


def _as_many(values, count, name):
    if count is not None and len(values) != count:
        raise ValueError(f"Every image must have one label. Received: {count} images and {len(values)} {name}")
