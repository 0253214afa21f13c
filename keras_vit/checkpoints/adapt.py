"""What another image size, patch size or number of channels does to weights. On arrays alone."""

import math

import numpy as np

from keras_vit import positions


def channels(kernel, wanted):
    """Adapts the first convolution to another number of input channels, by timm's rule.

    One channel: the sum over red, green and blue, so that a grey image gives what its grey RGB copy gave. Others: red,
    green, blue, red ... repeated, times `3 / channels`.

    Args:
        kernel: Array, `(height, width, channels, out)`.
        wanted: Number of channels.

    Returns:
        Array, `(height, width, wanted, out)`.

    Raises:
        ValueError: If the kernel has neither `wanted` nor three channels.
    """
    given = kernel.shape[2]
    if given == wanted:
        return kernel
    if given != 3:
        raise ValueError(f"Weights for 3 channels can be adapted to {wanted}. Received: weights for {given}")
    if wanted == 1:
        return kernel.sum(axis=2, keepdims=True)
    repeated = np.tile(kernel, (1, 1, math.ceil(wanted / 3), 1))[:, :, :wanted]
    return repeated * np.asarray(3 / wanted, kernel.dtype)


def statistics(values, wanted):
    """Returns a mean or deviation for another number of channels: one number stays, three become their mean."""
    if np.ndim(values) == 0 or len(values) == wanted:
        return values
    return float(np.mean(values))


def covered(count, prefix, registers, known=None, likely=None):
    """Finds which prefix tokens a table of positions covers, and its grid.

    Args:
        count: Length of the table.
        prefix: Number of prefix tokens.
        registers: How many of those are registers, which published models give no position.
        known: `(rows, columns)` of the source, if known.
        likely: `(rows, columns)` to try where nothing else is known and the grid is no square.

    Returns:
        Number of prefix tokens that it covers, and `(rows, columns)`.

    Raises:
        ValueError: If the table fits no grid.
    """
    choices = (0, prefix, prefix - registers) if registers else (prefix, 0)
    for choice in choices:
        patches = count - choice
        side = math.isqrt(max(patches, 0))
        if patches > 0 and known and math.prod(known) == patches:
            return choice, tuple(known)
        if patches > 0 and not known and side * side == patches:
            return choice, (side, side)
    for choice in choices:
        if not known and likely and math.prod(likely) == count - choice:
            return choice, tuple(likely)
    found = f"a grid of {known[0]} x {known[1]}" if known else "no square grid"
    raise ValueError(
        f"{count} positions with {prefix} tokens before the patches make {found}. "
        "Pass the source's as grid=(rows, columns)."
    )


def table(array, prefix, cover, source, target, method):
    """Resamples a table of positions and returns what its prefix tokens have apart.

    Args:
        array: Array, `(1, cover + source rows * columns, width)`.
        prefix: Number of prefix tokens of the model.
        cover: How many of them, the first ones, the table covers.
        source: `(rows, columns)` of the table.
        target: `(rows, columns)` of the model.
        method: As in `keras_vit.positions.resize_matrix`.

    Returns:
        Arrays `(1, prefix, width)`, zero where the table covers no token, and `(1, target rows * columns, width)`.
    """
    own = np.zeros((1, prefix, array.shape[-1]), array.dtype)
    own[:, :cover] = array[:, :cover]
    return own, positions.resize_grid(array[0, cover:], source, target, method)[None]
