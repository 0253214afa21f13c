"""Fixed sine-cosine position tables, as NumPy arrays."""

import numpy as np


def sincos_1d(length, width):
    """Sinusoids over a sequence, as in "Attention is all you need".

    Vaswani et al. 2017, section 3.5: `table[n, 2i] = sin(n / 10000^(2i / width))` and
    `table[n, 2i + 1]` its cosine.

    Args:
        length: Number of positions.
        width: Number of channels, even.

    Returns:
        float32 array, `(length, width)`.

    Raises:
        ValueError: If `width` is odd.
    """
    if width % 2:
        raise ValueError(f"sincos1d positions need an even width. Received: width={width}")
    frequency = 10000.0 ** -(np.arange(0, width, 2) / width)
    angle = np.arange(length)[:, None] * frequency
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, width).astype("float32")


def sincos_2d(grid, width):
    """Sinusoids over a grid of patches, as in MoCo v3 and big_vision.

    Chen et al. 2021 (arXiv:2104.02057). The four quarters of the channels are
    `sin x, cos x, sin y, cos y`, with frequencies from 1 down to 1/10000, both included.

    Args:
        grid: `(rows, columns)`.
        width: Number of channels, a multiple of 4 and at least 8.

    Returns:
        float32 array, `(rows * columns, width)`, row-major.

    Raises:
        ValueError: If `width` is not a multiple of 4 or below 8.
    """
    if width % 4 or width < 8:
        raise ValueError(
            f"sincos2d positions need a width that is a multiple of 4 and at least 8. Received: width={width}"
        )
    quarter = width // 4
    frequency = 10000.0 ** -(np.arange(quarter) / (quarter - 1))
    y, x = np.mgrid[: grid[0], : grid[1]]
    x, y = x.reshape(-1, 1) * frequency, y.reshape(-1, 1) * frequency
    return np.concatenate([np.sin(x), np.cos(x), np.sin(y), np.cos(y)], axis=1).astype("float32")
