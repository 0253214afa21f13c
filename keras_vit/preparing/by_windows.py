"""Pictures at their own size as a model takes them: in memory, or in a file of which windows are read."""

import os

import numpy as np

from keras_vit.preparing.of_bands import clipped
from keras_vit.utils import bands, deep_files
from keras_vit.utils.value_range import by_band


class NotReadError(ValueError):
    """Says why a window of a picture cannot be read."""


class Windows:
    """A picture in a file, of which nothing but the window that is asked for is in memory.

    Args:
        path: The file.
        preparation: The model's `Preparation`, which says which bands it takes, and in which range.

    Raises:
        ValueError: For a file that cannot be read, of other bands, or of more bits than the model takes.
    """

    def __init__(self, path, preparation):
        self.path = path
        self.range = preparation.range
        channels = preparation.shape[-1]
        bands.check_bits(path, self.range)
        self.raster, self.pixels_of = bands.by_windows(path, preparation.reading or bands.Reading(), channels)
        self.shape = (*self.raster.shape[:2], channels)

    def read(self, top, left, height, width):
        """Returns the pixels of a window; raises NotReadError if the file is damaged there, or gone.

        A pixel without data gets the value of the nearest one of the window.
        """
        try:
            values = self.pixels_of(self.raster.read(top, left, height, width))
            if not by_band(self.range) and not (values.min() >= self.range[0] and values.max() <= self.range[1]):
                rule = "must have numbers from {:g} to {:g}".format(*self.range)
                raise ValueError(f"{rule}. Received: numbers from {values.min():g} to {values.max():g}")
        except (ValueError, OSError) as error:
            text = str(error)
            raise NotReadError(text if str(self.path) in text else f"{str(self.path)!r}: {text}") from None
        return clipped(values, self.range)


def at_own_size(preparation, image):
    """Returns the pixels of an image at its own size, `(height, width, channels)`; of TIFF and `.npy` `Windows`.

    Args:
        preparation: The model's `Preparation`.
        image: What `preprocess` takes.
    """
    named = isinstance(image, (str, os.PathLike)) and preparation.range is not None
    return Windows(image, preparation) if named and deep_files.is_named(image) else preparation.whole(image)


def thinned(picture, step):
    """Returns every `step`-th pixel of what `at_own_size` returned, reading one row after another."""
    if not hasattr(picture, "read"):
        return picture[::step, ::step]
    height, width = picture.shape[:2]
    return np.concatenate([picture.read(row, 0, 1, width)[:, ::step] for row in range(0, height, step)])
