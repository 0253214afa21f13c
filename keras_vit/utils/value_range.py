"""The range of a model's pixels: `(low, high)`, or `(lows, highs)` with a number for each band.

A range with a number a band is one that was stated or measured for data of any depth: what is outside is clipped. Of
`(low, high)` alone, as of bytes, a number outside is a fault.
"""

import math

import numpy as np

from keras_vit.utils import checks


def by_band(value_range):
    """Returns whether a range, or `None`, has numbers of its own for each band."""
    return value_range is not None and np.ndim(value_range) == 2


def of_pairs(pairs):
    """Returns `(lows, highs)` of pairs `(low, high)`, one a band; `(low, high)` of such a pair alone.

    Raises:
        ValueError: Unless the numbers are finite, and each low one below its high one.
    """
    try:
        values = np.asarray(pairs, "float64")
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim not in (1, 2) or values.shape[-1] != 2 or not values.size:
        values = np.full(2, math.nan)
    if not (np.isfinite(values).all() and (values[..., 0] < values[..., 1]).all()):
        raise ValueError(
            "`value_range` must be the lowest and the highest pixel, or such a pair for each band. "
            f"Received: value_range={checks.shown(pairs)}"
        )
    if values.ndim == 1:
        return tuple(pairs)
    return tuple(tuple(map(plain, ends)) for ends in values.T.tolist())


def ends(value_range):
    """Returns the lowest and the highest pixel as float32 arrays, which broadcast to `(..., bands)`."""
    low, high = value_range
    return np.asarray(low, "float32"), np.asarray(high, "float32")


def to_bytes(images, value_range):
    """Returns pixels of a range, arrays or tensors `(..., bands)` of float32, on the scale of 0 to 255, unrounded."""
    low, high = ends(value_range)
    return (images - low) * (255 / (high - low))


def from_bytes(images, value_range):
    """Returns pixels on the scale of 0 to 255 in a range."""
    low, high = ends(value_range)
    return images * ((high - low) / 255) + low


def plain(number):
    """Returns a float as an integer if it is one."""
    return int(number) if float(number).is_integer() else float(number)
