"""What another image size, patch size or number of channels does to weights. On arrays alone."""

import math

import numpy as np

from keras_vit import resampling


def channels(kernel, wanted):
    """Adapts the first convolution to another number of input channels, by timm's rule.

    To one channel: the sum over red, green and blue, by which a grey image gives what its RGB copy gave (if the kernel
    is not standardised, and the mean is one number). To others: red, green, blue, red ... repeated, times
    `3 / channels`. From one channel: repeated, divided by their number.

    Args:
        kernel: Array, `(height, width, channels, out)`.
        wanted: Number of channels.

    Returns:
        Array, `(height, width, wanted, out)`.

    Raises:
        ValueError: If the kernel has neither `wanted` nor one or three channels.
    """
    given = kernel.shape[2]
    if given == wanted:
        return kernel
    if given not in (1, 3):
        raise ValueError(f"Weights for 1 or 3 channels can be adapted to {wanted}. Received: weights for {given}")
    if wanted == 1:
        return kernel.sum(axis=2, keepdims=True)
    repeated = np.tile(kernel, (1, 1, math.ceil(wanted / given), 1))[:, :, :wanted]
    return repeated * np.asarray(given / wanted, kernel.dtype)


def statistics(values, wanted):
    """Returns a mean or deviation for another number of channels: one number stays, three become their mean.

    Raises:
        ValueError: If they are no finite numbers.
    """
    try:
        numbers = np.asarray(values, "float64")
    except (TypeError, ValueError):
        numbers = np.asarray(np.nan)
    if numbers.ndim > 1 or not np.isfinite(numbers).all():
        raise ValueError(f"Means and deviations are numbers. Received: {values!r}")
    return values if numbers.ndim == 0 or numbers.size == wanted else float(numbers.mean())


def covered(count, prefix, registers, known=None, likely=None, covers=None):
    """Finds which prefix tokens a table of positions covers, and its grid.

    Args:
        count: Length of the table.
        prefix: Number of prefix tokens.
        registers: How many of those are registers, which published models give no position.
        known: `(rows, columns)` of the source, if known.
        likely: `(rows, columns)` of the model, which the source has in all likelihood if the numbers agree.
        covers: Whether it covers the prefix tokens; `None` if that is not known.

    Returns:
        Number of prefix tokens that it covers, and `(rows, columns)`.

    Raises:
        ValueError: If the table fits no grid, or as well the model's as a square one.
    """
    choices = (0, prefix, prefix - registers) if registers else (prefix, 0)
    choices = choices if covers is None else (prefix,) if covers else (0,)
    counts = [(choice, count - choice) for choice in choices if count > choice]
    if known:
        fits = [(choice, tuple(known)) for choice, patches in counts if patches == math.prod(known)]
        hint = f"a grid of {known[0]} x {known[1]}"
    else:
        squares = [(choice, (math.isqrt(n), math.isqrt(n))) for choice, n in counts if math.isqrt(n) ** 2 == n]
        alike = [(choice, tuple(likely)) for choice, n in counts if likely and n == math.prod(likely)]
        fits, hint = alike or squares, "no square grid"
        if alike and any(choice == alike[0][0] for choice, _ in squares) and likely[0] != likely[1]:
            fits, hint = [], f"a square grid as well as one of {likely[0]} x {likely[1]}"
    if fits:
        return fits[0]
    raise ValueError(
        f"{count} positions with {prefix} tokens before the patches make {hint}. "
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
        method: As in `keras_vit.resampling.resize_matrix`.

    Returns:
        Arrays `(1, prefix, width)`, zero where the table covers no token, and `(1, target rows * columns, width)`.
    """
    own = np.zeros((1, prefix, array.shape[-1]), array.dtype)
    own[:, :cover] = array[:, :cover]
    return own, resampling.resize_grid(array[0, cover:], source, target, method)[None]
