"""Pictures that a model sees in tiles: in memory, or in a file of which windows are read."""

import dataclasses
import math

from keras_vit.models.metadata import keep
from keras_vit.preparing.of_bands import clipped
from keras_vit.tasks.in_tiles import InTiles
from keras_vit.utils import bands, checks, deep_files
from keras_vit.utils.images import MOST_PIXELS, read_pixels
from keras_vit.utils.value_range import by_band


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
        self.range = preparation.range
        channels = preparation.shape[-1]
        if self.range == checks.BYTES:
            bands.check_eight(path)
        bands.check_depth(path, self.range)
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


def reader(trained):
    """Returns the function from an image file to its pixels, `(height, width, channels)`; of TIFF and `.npy` `Windows`.

    Args:
        trained: A `Trained` whose task is `whole`.
    """
    if not isinstance(trained.task, InTiles):
        return lambda path: read_pixels(path, trained.size[2])
    preparation = trained.about.preparation

    def opened(path):
        if by_windows(trained.task, path) and preparation.range is not None:
            return Windows(path, preparation)
        return preparation.whole(path)  # of a model whose range cannot be told, this says so

    return opened


def by_windows(task, path):
    """Returns whether a task reads a file by windows: what makes pictures of pictures keeps their format."""
    return task.whole and task.gives != "image" and str(path).lower().endswith(deep_files.ENDINGS)


def is_large(task, path):
    """Returns whether a picture is read by windows and its mask is too large for memory."""
    try:
        return by_windows(task, path) and math.prod(bands.size_of(path)) > MOST_PIXELS
    except (ValueError, OSError):  # which reading it will tell
        return False
