"""Sine-cosine position tables, and resampling of learned positions and patch projections, in NumPy."""

import math

import numpy as np

from keras_vit.utils import checks


def sincos_1d(length, width):
    """Returns sine-cosine positions of a sequence, as in "Attention is all you need".

    Vaswani et al. 2017, section 3.5: `table[n, 2i] = sin(n / 10000^(2i / width))`, and
    `table[n, 2i + 1]` is its cosine.

    Args:
        length: Number of positions.
        width: Number of channels, even.

    Returns:
        float32 array, `(length, width)`.

    Raises:
        ValueError: If `width` is odd.
    """
    if width % 2:
        raise ValueError(f"The width must be even for sincos1d positions. Received: width={width}")
    frequency = 10000.0 ** -(np.arange(0, width, 2) / width)
    angle = np.arange(length)[:, None] * frequency
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, width).astype("float32")


def sincos_2d(grid, width, inclusive=True):
    """Returns sine-cosine positions of a grid of patches, as in MoCo v3 and big_vision, or as in MAE.

    Chen et al. 2021 (arXiv:2104.02057). The four quarters of the channels are
    `sin x, cos x, sin y, cos y`, with frequencies from 1 down to 1/10000.

    Args:
        grid: `(rows, columns)`.
        width: Number of channels, a multiple of 4 and at least 8.
        inclusive: Whether the last frequency is 1/10000, as in MoCo v3 and big_vision, or one step above it, as in
            MAE (He et al. 2021, arXiv:2111.06377).

    Returns:
        float32 array, `(rows * columns, width)`, row-major.

    Raises:
        ValueError: If `width` is not a multiple of 4 or below 8.
    """
    if width % 4 or width < 8:
        raise ValueError(
            f"The width must be a multiple of 4 and at least 8 for sincos2d positions. Received: width={width}"
        )
    quarter = width // 4
    frequency = 10000.0 ** -(np.arange(quarter) / (quarter - inclusive))
    y, x = np.mgrid[: grid[0], : grid[1]]
    x, y = x.reshape(-1, 1) * frequency, y.reshape(-1, 1) * frequency
    return np.concatenate([np.sin(x), np.cos(x), np.sin(y), np.cos(y)], axis=1).astype("float32")


def square(patches):
    """Returns the sides of a square grid of patches; raises ValueError if their number is not a square."""
    side = math.isqrt(patches)
    if side * side != patches:
        raise ValueError(f"Positions need `grid`, (rows, columns), or a square number of patches. Received: {patches}")
    return side, side


def scaled(grid, patches):
    """Returns the grid of a number of patches with the proportions of `grid`; raises ValueError if there is none."""
    rows = round(math.sqrt(patches * grid[0] / grid[1]))
    if not rows or patches % rows or rows * grid[1] != patches // rows * grid[0]:
        raise ValueError(f"{patches} patches have no grid with the proportions of {grid[0]} x {grid[1]}.")
    return rows, patches // rows


def _triangle(x):
    return np.maximum(0, 1 - np.abs(x))


def _cubic(a):
    """Returns Keys' cubic convolution kernel (1981) with slope `a` at 1."""

    def kernel(x):
        x = np.abs(x)
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return kernel


STEPS = 1024  # in TensorFlow's table of cubic weights
METHODS = {
    #                     kernel, half its width, whether it widens when shrinking, pixels beyond the edge, and what
    #                     is added to the target's length to find the scale; `None` keeps both ends
    "bilinear":           (_triangle, 1, False, "repeat", 0),
    "bilinear-antialias": (_triangle, 1, True, "leave", 0),
    "bicubic":            (_cubic(-0.75), 2, False, "repeat", 0),
    "bicubic-antialias":  (_cubic(-0.5), 2, True, "leave", 0),
    "bicubic-offset":     (_cubic(-0.75), 2, False, "repeat", 0.1),
    "bicubic-corners":    (_cubic(-0.75), 2, False, "repeat", None),
    "bicubic-table":      (_cubic(-0.5), 2, False, "leave", 0),
    "jax-linear":         (_triangle, 1, True, "leave", 0),
    "jax-cubic":          (_cubic(-0.5), 2, True, "leave", 0),
    "zoom":               (_triangle, 1, False, "repeat", None),
}  # fmt: skip


def resize_matrix(source, target, method):
    """Returns the matrix that resizes a line of `source` samples to `target` samples.

    Args:
        source: Number of samples before.
        target: Number of samples after.
        method: One of

            - `"zoom"`: `scipy.ndimage.zoom(order=1)`, which keeps both ends (vit_jax, early big_vision).
            - `"bilinear"`, `"bicubic"`: PyTorch's `interpolate` (Hugging Face: bicubic; Google's files in timm:
              bilinear); `"bilinear"` is TensorFlow's too.
            - `"bilinear-antialias"`, `"bicubic-antialias"`: the same with `antialias=True` (timm's own files: bicubic).
            - `"bicubic-offset"`: the same by a factor of `(target + 0.1) / source` (the authors of DINO and DINOv2).
            - `"bicubic-corners"`: the same with `align_corners=True` (torchvision).
            - `"bicubic-table"`: TensorFlow's `"bicubic"` without antialiasing, which rounds places to `STEPS` a sample.
            - `"jax-linear"`, `"jax-cubic"`: `jax.image.resize` (big_vision, FlexiViT: linear).

    Returns:
        float64 array, `(target, source)`; every row sums to one.

    Raises:
        ValueError: For an unknown method.
    """
    checks.one_of("resample", method, tuple(METHODS))
    kernel, reach, widen, edge, offset = METHODS[method]
    scale = source / (target + (offset or 0))
    width = max(scale, 1) if widen else 1
    place = np.linspace(0, source - 1, target) if offset is None else (np.arange(target) + 0.5) * scale - 0.5
    if method == "bicubic-table":
        place = (np.arange(target, dtype="float32") + np.float32(0.5)) * np.float32(scale) - np.float32(0.5)
        place = np.floor(place) + np.round((place - np.floor(place)) * STEPS) / np.float64(STEPS)
    place = place[:, None]
    beyond = int(np.ceil(reach * width)) + 1 if edge == "repeat" else 0
    weights = kernel((place - np.arange(-beyond, source + beyond)) / width)  # (target, beyond + source + beyond)
    matrix = np.zeros((target, source))
    np.add.at(matrix.T, np.clip(np.arange(-beyond, source + beyond), 0, source - 1), weights.T)
    return matrix / matrix.sum(axis=1, keepdims=True)


def resize_grid(table, source, target, method):
    """Resamples a table of position embeddings to another grid.

    Args:
        table: Array, `(source rows * source columns, width)`, row-major.
        source: `(rows, columns)` before; of tubelets `(steps, rows, columns)`.
        target: The same after.
        method: As in `resize_matrix`, for rows and columns; steps are resampled linearly.

    Returns:
        Array of the table's dtype, `(target rows * target columns, width)`; the table itself if the grids are equal.

    Raises:
        ValueError: For an unknown method.
    """
    rows, columns = (resize_matrix(s, t, method) for s, t in zip(source[-2:], target[-2:]))
    if tuple(source) == tuple(target):
        return table
    if len(source) == 3:
        steps = np.asarray(table, "float64").reshape(source[0], -1)
        steps = (resize_matrix(source[0], target[0], "bilinear") @ steps).reshape(target[0], -1, table.shape[-1])
        return np.concatenate([resize_grid(step.astype(table.dtype), source[1:], target[1:], method) for step in steps])
    x = np.asarray(table, "float64").reshape(*source, -1)
    x = np.einsum("tr,rcw->tcw", rows, x)  # (target rows, columns, width)
    x = np.einsum("uc,tcw->tuw", columns, x)  # (target rows, target columns, width)
    return x.reshape(target[0] * target[1], -1).astype(table.dtype)


def resize_patches(kernel, target, method):
    """Resamples a patch projection. Resized patches then have the same tokens as the original ones.

    Beyer et al. 2023 (arXiv:2212.08013, FlexiViT), section 3.4: multiplies by the pseudo-inverse of the resizing.

    Args:
        kernel: Array, `(height, width, channels, out)`.
        target: `(height, width)` of the new patches.
        method: As in `resize_matrix`.

    Returns:
        Array of the kernel's dtype, `(*target, channels, out)`.

    Raises:
        ValueError: For an unknown method.
    """
    rows, columns = (np.linalg.pinv(resize_matrix(s, t, method).T) for s, t in zip(kernel.shape, target))
    x = np.einsum("tr,rcio->tcio", rows, np.asarray(kernel, "float64"))
    return np.einsum("uc,tcio->tuio", columns, x).astype(kernel.dtype)


def resize_distances(table, source, target, method=None):
    """Resamples a table of `RelativePositions` to another grid; numbers of prefix tokens, at its end, stay.

    BEiT's code and timm stretch the distances of the source: each step is longer than the one before by a factor, so
    that near ones stay as they are and the furthest reaches the end; linear between them. Transformers' code is
    bilinear instead.

    Args:
        table: Array, `((2 rows - 1) * (2 columns - 1) + extra, heads)`.
        source: `(rows, columns)` before.
        target: `(rows, columns)` after.
        method: As in `resize_matrix`; `None` for the stretching.

    Returns:
        Array of the table's dtype; the table itself if the grids are equal.
    """
    if tuple(source) == tuple(target):
        return table
    sides = [2 * side - 1 for side in source]
    of_patches = np.asarray(table[: sides[0] * sides[1]], "float64").reshape(*sides, -1)
    line = _stretch_matrix if method is None else lambda s, t: resize_matrix(2 * s - 1, 2 * t - 1, method)
    rows, columns = (line(s, t) for s, t in zip(source, target))
    resized = np.einsum("tr,uc,rch->tuh", rows, columns, of_patches)
    resized = resized.reshape(len(rows) * len(columns), -1).astype(table.dtype)
    return np.concatenate([resized, table[sides[0] * sides[1] :]])


def _stretch_matrix(source, target):
    """Returns the matrix `(2 target - 1, 2 source - 1)` that interpolates at -(target - 1) ... target - 1."""
    low, high = 1.01, 1.5  # the bounds and the tolerance are those of BEiT's code
    while high - low > 1e-6:
        factor = (low + high) / 2
        if (1 - factor ** (source - 1)) / (1 - factor) > target - 1:
            high = factor
        else:
            low = factor
    distances = np.concatenate([[0.0], np.cumsum(factor ** np.arange(source - 1))])
    source_places, target_places = np.concatenate([-distances[:0:-1], distances]), np.arange(1 - target, target)
    return np.stack([np.interp(target_places, source_places, unit) for unit in np.eye(len(source_places))], axis=1)


def area_matrix(source, target, method="area"):
    """Returns the matrix that averages `source` samples of a line to `target` ones, weighted by overlap."""
    covered = np.clip(np.linspace(0, source, target + 1)[:, None] - np.arange(source), 0, 1)
    return np.diff(covered, axis=0) * target / source
