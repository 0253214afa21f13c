"""Adapts arrays to another number of channels, or another grid of positions."""

import math

import numpy as np

from keras_vit.utils import resampling


def channels(kernel, count):
    """Adapts the first convolution to another number of input channels, by timm's rule.

    To one channel: the sum over red, green and blue. A gray image then gives the same result as its RGB copy, unless
    the kernel is standardized or the mean differs by channel. To other numbers: red, green, blue, red ... repeated,
    times `3 / channels`. From one channel: repeated, divided by the number of channels.

    Args:
        kernel: Array, `(height, width, channels, out)`.
        count: Number of channels.

    Returns:
        Array, `(height, width, wanted, out)`.

    Raises:
        ValueError: If the kernel must change and has neither one nor three channels.
    """
    channels = kernel.shape[2]
    if channels == count:
        return kernel
    if channels not in (1, 3):
        raise ValueError(f"Only weights for 1 or 3 channels adapt to {count}. Received: weights for {channels}")
    if count == 1:
        return kernel.sum(axis=2, keepdims=True)
    repeated = np.tile(kernel, (1, 1, math.ceil(count / channels), 1))[:, :, :count]
    return repeated * np.asarray(channels / count, kernel.dtype)


def statistics(values, count):
    """Adapts a mean or deviation to another number of channels: one number stays, three become their mean.

    Raises:
        ValueError: If they are not finite numbers.
    """
    try:
        numbers = np.asarray(values, "float64")
    except (TypeError, ValueError):
        numbers = np.asarray(np.nan)
    if numbers.ndim > 1 or not np.isfinite(numbers).all():
        raise ValueError(f"Means and deviations must be finite numbers. Received: {values!r}")
    return values if numbers.ndim == 0 or numbers.size == count else float(numbers.mean())


def covered(count, prefix, registers, grid=None, likely=None, class_position=None):
    """Finds the number of prefix tokens that a table of positions covers, and its grid.

    Args:
        count: Length of the table.
        prefix: Number of prefix tokens.
        registers: Number of registers among them; published models give registers no position.
        grid: `(rows, columns)` of the source, if known.
        likely: `(rows, columns)` of the model: probably the source's too, if the count agrees.
        class_position: Whether the table covers the prefix tokens; `None` if unknown.

    Returns:
        Number of prefix tokens that the table covers, and `(rows, columns)`.

    Raises:
        ValueError: If the table fits no grid, or fits both the model's and a square one.
    """
    choices = (0, prefix, prefix - registers) if registers else (prefix, 0)
    choices = choices if class_position is None else (prefix,) if class_position else (0,)
    counts = [(choice, count - choice) for choice in choices if count > choice]
    if grid:
        fits = [(choice, tuple(grid)) for choice, patches in counts if patches == math.prod(grid)]
        hint = f"no grid of {grid[0]} x {grid[1]}"
    else:
        squares = [(choice, (math.isqrt(n), math.isqrt(n))) for choice, n in counts if math.isqrt(n) ** 2 == n]
        alike = [(choice, tuple(likely)) for choice, n in counts if likely and n == math.prod(likely)]
        fits, hint = alike or squares, "no square grid"
        usual = choices[: choices.index(alike[0][0]) + 1] if alike else ()
        if alike and alike[0] not in squares and any(choice in usual for choice, _ in squares):
            fits, hint = [], f"both a square grid and one of {likely[0]} x {likely[1]}"
    if fits:
        return fits[0]
    raise ValueError(
        f"{count} positions with {prefix} prefix tokens make {hint}. Pass the source's as grid=(rows, columns)."
    )


def table(array, prefix, cover, source, target, method):
    """Resamples a table of positions, and returns the prefix tokens' positions separately.

    Args:
        array: Array, `(1, cover + source rows * columns, width)`.
        prefix: Number of prefix tokens of the model.
        cover: Number of prefix tokens that the table covers, from the first.
        source: `(rows, columns)` of the table.
        target: `(rows, columns)` of the model.
        method: As in `keras_vit.utils.resampling.resize_matrix`.

    Returns:
        Arrays `(1, prefix, width)`, zero for tokens outside the table, and `(1, target rows * columns, width)`.
    """
    prefix_positions = np.zeros((1, prefix, array.shape[-1]), array.dtype)
    prefix_positions[:, :cover] = array[:, :cover]
    return prefix_positions, resampling.resize_grid(array[0, cover:], source, target, method)[None]
