"""Outputs that are maps of logits: the class of each pixel, at any size. NumPy only."""

import numpy as np

from keras_vit.utils.images import strips
from keras_vit.utils.resampling import resize_matrix


def predict(output, size):
    """Returns the class index of each pixel of an image at another size.

    Args:
        output: Logits, `(height, width, classes)`. They are resized bilinearly with half-pixel centers, a few rows at a
            time. Or what `decided` makes of them, whose nearest pixels are taken.
        size: `(rows, columns)` of the result.

    Returns:
        Array, `(rows, columns)`: uint8 for up to 256 classes, else int64.
    """
    if is_decided(output):
        return output if output.shape == tuple(size) else output[np.ix_(*map(_nearest, output.shape, size))]
    output = np.asarray(output, "float32")
    rows, columns = (_neighbors(have, want) for have, want in zip(output.shape, size))
    classes = np.empty(size, "uint8" if output.shape[-1] <= 256 else "int64")
    for some in strips(size[0], size[1] * output.shape[-1]):
        strip = _between(output, [part[some] for part in rows])  # (some rows, width, classes)
        strip = _between(strip.swapaxes(0, 1), columns)  # (columns, some rows, classes)
        classes[some] = strip.argmax(-1).T
    return classes


def is_decided(output):
    """Returns whether an output is class indices, integers `(rows, columns)`, and not logits."""
    return getattr(output, "ndim", 0) == 2 and np.issubdtype(output.dtype, np.integer)


def decided(output):
    """Returns the class index of each pixel of logits, `(rows, columns, classes)`, as `predict` at their own size."""
    if is_decided(output):
        return output
    output = np.asarray(output)
    return output.argmax(-1).astype("uint8" if output.shape[-1] <= 256 else "int64")


def _nearest(source, target):
    """Returns the nearest source line of each resized line."""
    return ((np.arange(target) + 0.5) * source / target).astype(int)


def _neighbors(source, target):
    """Returns the two source lines of each resized line, and their weights, from `resize_matrix`."""
    matrix = resize_matrix(source, target, "bilinear").astype("float32")
    first = (matrix != 0).argmax(1)
    second = np.minimum(first + 1, source - 1)
    weights = [np.take_along_axis(matrix, lines[:, None], 1)[..., None] for lines in (first, second)]
    return first, second, weights[0], weights[1] * (first != second)[:, None, None]


def _between(lines, neighbors):
    """Returns an array resized along its first axis."""
    first, second, near, far = neighbors
    return lines[first] * near + lines[second] * far
