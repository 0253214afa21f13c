"""Pictures at their own size as a model takes them: in memory, or in a file of which windows are read."""

import os

import numpy as np

from keras_vit.preparing.of_bands import clipped
from keras_vit.utils import bands, checks, deep_files


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
        self.reading = preparation.reading or bands.Reading()
        self.range = preparation.range
        self.raster = deep_files.opened(path, self.reading.pages)
        self.places = bands.places_of(self.raster, self.reading.bands)
        channels = preparation.shape[-1]
        if len(self.places) != channels and (channels, len(self.places)) != (3, 1):
            raise ValueError(f"{str(path)!r} must have {channels} bands. Received: {len(self.places)}")
        if self.range == checks.BYTES:
            bands.check_eight(path)
        bands.check_depth(path, self.range)
        self.places *= channels // len(self.places)
        self.shape = (*self.raster.shape[:2], channels)

    def read(self, top, left, height, width):
        """Returns the pixels of a window; raises NotReadError if the file is damaged there, or gone.

        A pixel without data gets the value of the nearest one of the window.
        """
        try:
            values = self.raster.read(top, left, height, width)[..., self.places]
            unknown = bands.is_unknown(values, self.reading.no_data, self.raster.no_data)
            lost = ~np.isfinite(values)
            if (lost if unknown is None else lost & ~unknown).any():
                raise ValueError("has NaN or infinite pixels: data.no_data='nan' masks NaN")
            stated = bands.is_unknown(values, bands.FILE, self.raster.no_data)
            if unknown is None and stated is not None and stated.any():
                raise ValueError("has pixels of its value of no data: data.no_data='file' masks them")
        except (ValueError, OSError) as error:
            text = str(error)
            raise NotReadError(text if str(self.path) in text else f"{str(self.path)!r}: {text}") from None
        if unknown is not None and unknown.any():
            values = bands.filled(values.astype("float32"), unknown)
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
