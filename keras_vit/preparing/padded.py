"""Resizes an image as OWLv2's processor does: padded to a square, blurred, and interpolated."""

import math

import numpy as np

from keras_vit.utils.images import strips
from keras_vit.utils.resampling import resize_matrix


def padded(image, size, black=0):
    """Returns an image, `(height, width, channels)`, float32 at `(height, width)` `size`; see `padded_matrices`.

    Each new pixel is a sum of few old ones: the matrices are sparse.
    """
    from scipy.sparse import csr_array

    rows, columns = map(csr_array, padded_matrices(image.shape[:2], size))
    channels, values = image.shape[2], image.reshape(len(image), -1)
    sums = np.empty((size[0], values.shape[1]))
    for some in strips(values.shape[1], len(values)):  # few columns are converted at a time
        sums[:, some] = rows @ (values[:, some] - float(black))
    sums = sums.reshape(size[0], -1, channels).swapaxes(0, 1)  # (width, rows, channels)
    resized = (columns @ sums.reshape(len(sums), -1)).reshape(size[1], size[0], channels)
    return (resized.swapaxes(0, 1) + black).astype("float32")


def padded_matrices(shape, size):
    """Returns the two matrices that resize an image of a shape after it is padded with black to a square.

    The image is at the top left. If both sides shrink, a Gaussian filter comes first, whose deviation is half of the
    factor less one, then bilinear interpolation without antialiasing; as transformers' `Owlv2ImageProcessor`, in which
    each axis is blurred by the factor of the other one.

    Args:
        shape: `(height, width)` of the image.
        size: `(height, width)` afterwards.

    Returns:
        float64 arrays, `(size[0], shape[0])` and `(size[1], shape[1])`, for rows and columns.
    """
    side = max(shape)
    sigmas = [max((side / want - 1) / 2, 0) for want in size]
    blurred = all(sigmas)
    pairs = zip(shape, size, sigmas[::-1])
    return [_blurred(resize_matrix(side, want, "bilinear"), sigma if blurred else 0)[:, :have]
            for have, want, sigma in pairs]  # fmt: skip


def _blurred(matrix, sigma):
    """Returns a matrix, `(target, source)`, that filters the source first; its ends are reflected, without the edge."""
    radius = min(math.ceil(3 * sigma), matrix.shape[1] - 1)
    if not radius:
        return matrix
    from scipy.ndimage import correlate1d

    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    wide = correlate1d(
        np.pad(matrix, ((0, 0), (radius, radius))).astype("float64"), weights / weights.sum(), mode="constant"
    )
    folded = wide[:, radius:-radius].copy()
    folded[:, 1 : radius + 1] += wide[:, :radius][:, ::-1]
    folded[:, -radius - 1 : -1] += wide[:, -radius:][:, ::-1]
    return folded
