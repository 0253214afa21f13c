"""Restoration with the help of a reference image: the model, and the part of a reference that belongs to a tile."""

import keras
import numpy as np

from keras_vit.models.between import between
from keras_vit.tasks.restore.jobs import check_full_size

INPUTS = ("images", "references")
MARGIN = 12  # pixels around an original, from which its reference is shifted and turned in training
SEARCHED = 2**16  # pixels of a reference, at most, in which the place of a tile is searched
SIDE = 16  # pixels of a side of what is searched, at least


def check(task):
    """Raises ValueError for references of a `Restore` with several jobs, or of gray images."""
    if task.reference and (task.gray or task.jobs):
        raise ValueError(
            "Restore.reference is for one job, and images with the channels of their references. "
            f"Received: {'gray=True' if task.gray else f'jobs={task.jobs}'}"
        )


def by_reference(encoder, features, scale):
    """Returns the inputs, a dictionary, and the feature map and tokens of a model with textures of a reference.

    Textures are joined to the feature map as in Yang et al. 2020 (arXiv:2006.04139, "TTSR"), equation 4, weighted by
    the scores. The convolution is two here, and the last one is initialized with zeros: before training, references
    change nothing.

    Args:
        encoder: Model from `dense.encoder`.
        features: Its symbolic feature map, `(batch, rows, columns, filters)`, of the size of the images.
        scale: Factor from the images' resolution to the references'.
    """
    from keras_vit.layers import TextureTransfer

    check_full_size(encoder, features, "reference")
    (_, height, width, channels), filters, dtype = encoder.input_shape, features.shape[3], encoder.dtype_policy
    references = keras.Input((scale * height, scale * width, channels), name="references")
    find = TextureTransfer(filters, scale=scale, name="texture_transfer", dtype=dtype)
    textures, scores = find([encoder.input, references])
    settings = {"padding": "same", "data_format": "channels_last", "dtype": dtype}
    x = keras.layers.Concatenate(name="texture_pair", dtype=dtype)([features, textures])
    x = keras.layers.Conv2D(filters, 3, activation="relu", name="texture_conv0", **settings)(x)
    x = keras.layers.Conv2D(filters, 3, kernel_initializer="zeros", name="texture_conv1", **settings)(x)
    x = keras.layers.Multiply(name="texture_weighted", dtype=dtype)([x, scores])
    joined = keras.layers.Add(name="texture_sum", dtype=dtype)([features, x])
    tokens = between(features, encoder.output, joined, training=None)
    return {"images": encoder.input, "references": references}, joined, tokens


def parts_of(size, scale):
    """Returns what `utils.tiles.tiled` takes to give each tile of an image the part of the reference that is like it.

    The part is `scale` times as large as the tile. It is where the normalized cross-correlation (Lewis 1995, "Fast
    template matching") with the tile is largest, searched on shrunk images by Fourier transforms.

    Args:
        size: `(height, width, channels)` of the tiles.
        scale: Factor from the image's resolution to the reference's.
    """

    def of_image(image, others):
        (reference,) = others["references"]
        missing = [(0, max(scale * tile - side, 0)) for tile, side in zip(size[:2], reference.shape)]
        reference = np.pad(np.asarray(reference, "float32"), [*missing, (0, 0)], "edge")
        coarse = int(np.ceil(np.sqrt(max(reference[..., 0].size / scale**2, image[..., 0].size) / SEARCHED)))
        place = _searcher(_means(image, coarse), _means(reference, coarse * scale))
        most = [side - scale * tile for side, tile in zip(reference.shape, size[:2])]

        def part(y, x):
            shift = place(*(range(at // coarse, -(-(at + tile) // coarse)) for at, tile in zip((y, x), size)))
            top, left = (min(max(scale * (at + coarse * s), 0), m) for at, s, m in zip((y, x), shift, most))
            window = reference[top : top + scale * size[0], left : left + scale * size[1]]
            return {"references": window[None]}

        return part

    return of_image


def _means(image, side):
    """Returns the brightness of squares of an image, `(rows, columns)`; pixels beyond the last square are left out."""
    rows, columns = (max(length // side, 1) for length in image.shape[:2])
    image = image[: rows * side, : columns * side]
    height, width = image.shape[0] // rows, image.shape[1] // columns
    return image.reshape(rows, height, columns, width, -1).mean((1, 3, 4), dtype="float64")


def _searcher(image, reference):
    """Returns the function from rows and columns of an image, two ranges, to their shift in a reference."""
    from scipy import fft

    shape = [fft.next_fast_len(side, real=True) for side in reference.shape]
    reference = reference - reference.mean()
    spectrum = fft.rfft2(reference, shape)
    sums = [np.pad(values, [(1, 0), (1, 0)]).cumsum(0).cumsum(1) for values in (reference, reference**2)]

    def shift(*ranges):
        starts, counts = [], []
        for each, side, other in zip(ranges, image.shape, reference.shape):
            count = min(max(len(each), SIDE), side, other)
            starts.append(min(max(each[0] - (count - len(each)) // 2, 0), side - count))
            counts.append(count)
        (y, x), (height, width) = starts, counts
        sought = image[y : y + height, x : x + width]
        sought = sought - sought.mean()
        found = fft.irfft2(spectrum * fft.rfft2(sought, shape).conj(), shape)
        found = found[: reference.shape[0] - height + 1, : reference.shape[1] - width + 1]
        total, square = (
            each[height:, width:] - each[:-height, width:] - each[height:, :-width] + each[:-height, :-width]
            for each in sums
        )
        deviation = np.sqrt(np.maximum(square - total**2 / sought.size, 1e-3 * sought.size))
        top, left = np.unravel_index(np.argmax(found / deviation), found.shape)
        return top - y, left - x

    return shift
