"""Reads what people give to the page: images, clips and drawings, as the model sees them."""

import contextlib
import math
import pathlib

import numpy as np

from keras_vit.preparing.preprocessing import preprocess
from keras_vit.utils import bands, deep_files, images

MOST_PIXELS = 50_000_000  # of an upload: what a page decodes for others is bounded, by some 0.4 GB
MOST_WHOLE = 1_000_000  # of an image that is restored whole: the page computes one after the other


def reader(loaded):
    """Returns the function from a file to what the page shows the model, by its task.

    Args:
        loaded: A `Trained`.
    """
    size, data, task = loaded.size, loaded.bound.data, loaded.task
    if task.clips is not None:
        return lambda path: read_clip(path, size, data, task.clips)
    if task.whole:
        return lambda path: read_whole(path, size[-1])
    return lambda path: read_image(path, size, data, loaded.model if loaded.alone else None)


def read_image(path, size, data, model=None):
    """Reads an image file, prepared as for the recipe's evaluation.

    Args:
        path: The file.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`.
        model: Model whose own evaluation rule replaces `data`, or `None`.

    Returns:
        float32 array of `size`, 0..255.

    Raises:
        ValueError: If the file is not an image, or is damaged or too large.
    """
    from keras_vit.data import pipeline

    with _named(path):
        if deep_files.is_named(path):
            refuse_large(path)
        else:
            images.encoded(path, MOST_PIXELS)
        return pipeline.read_files([path], size, data)[0] if model is None else preprocess(model, path)[0]


def refuse_large(path):
    """Raises ValueError for a picture of bands that is too large for a page."""
    if math.prod(bands.size_of(path)) > MOST_PIXELS:
        raise ValueError(f"{str(path)!r} is too large: it has more than {MOST_PIXELS // 10**6} million pixels.")


def read_whole(path, channels):
    """Reads an image file at its own size, as `predict` does for tasks that see images whole.

    Returns:
        Array, `(rows, columns, channels)`, 0..255.

    Raises:
        ValueError: As `read_image`; above `MOST_WHOLE` pixels.
    """
    with _named(path):
        images.encoded(path, MOST_WHOLE)
        return images.read_pixels(path, channels)


def read_clip(path, size, data, sampling):
    """Reads a clip as `read_image` does an image.

    Args:
        path: The file.
        size: `(frames, height, width, channels)`.
        data: A `keras_vit.config.Data`.
        sampling: A `keras_vit.data.clip_source.Sampling`.
    """
    from keras_vit.data.readers import clip_folder

    with _named(path):
        return clip_folder.reader(size, data, sampling, most_pixels=MOST_PIXELS, by_bytes=False)(path)


def read_drawing(path):
    """Returns what the pad saved as uint8 RGBA, `(rows, columns, 4)`; raises ValueError if it is no drawing."""
    with _named(path, "The drawing"):
        data = images.encoded(path, MOST_PIXELS)
        try:
            with images.opened(data) as image:
                return np.asarray(image.convert("RGBA"))
        except Exception as error:  # any error of the decoder is a fault of this file
            raise ValueError(f"{str(path)!r} cannot be read as an image: {error}.") from None


@contextlib.contextmanager
def _named(path, name=None):
    """Lets errors name an image as its user knows it, not by the path of a temporary file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace(repr(str(path)), name or repr(pathlib.Path(path).name))) from None
