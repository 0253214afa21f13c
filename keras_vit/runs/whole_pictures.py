"""Pictures that a model sees in tiles: in memory, or in a file of which windows are read."""

import dataclasses
import math

import numpy as np

from keras_vit.models.metadata import keep
from keras_vit.preparing.of_bands import clipped
from keras_vit.tasks.in_tiles import InTiles
from keras_vit.utils import bands, checks, deep_files
from keras_vit.utils.images import MOST_PIXELS, read_pixels


def in_tiles(trained, tiles):
    """Returns a trained model with another option `tiles` of its task; `None` for that of its recipe."""
    return trained if tiles is None else dataclasses.replace(trained, tiles=tiles)


def note_tiles(trained):
    """Writes into a model's metadata, for exported files, how large pictures are tiled, if its task does so."""
    if isinstance(trained.task, InTiles) and trained.task.whole:
        keep(trained.model, tiles=trained.task.tiles_facts(trained.size))


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


def reader(trained):
    """Returns the function from an image file to its pixels, `(height, width, channels)`; of TIFF and `.npy` `Windows`.

    Args:
        trained: A `Trained` whose task is `whole`.
    """
    if not isinstance(trained.task, InTiles):
        return lambda path: read_pixels(path, trained.size[2])
    preparation = trained.about.preparation
    return lambda path: Windows(path, preparation) if by_windows(trained.task, path) else preparation.whole(path)


def by_windows(task, path):
    """Returns whether a task reads a file by windows: what makes pictures of pictures keeps their format."""
    return task.whole and task.gives != "image" and str(path).lower().endswith(deep_files.ENDINGS)


def is_large(task, path):
    """Returns whether a picture is read by windows and its mask is too large for memory."""
    try:
        return by_windows(task, path) and math.prod(deep_files.opened(path).shape[:2]) > MOST_PIXELS
    except (ValueError, OSError):  # which reading it will tell
        return False
