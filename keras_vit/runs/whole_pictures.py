"""Pictures that a model sees in tiles: in memory, or in a file of which windows are read."""

import dataclasses
import math

from keras_vit.models.metadata import keep
from keras_vit.preparing.by_windows import Windows
from keras_vit.tasks.in_tiles import InTiles
from keras_vit.utils import bands, deep_files
from keras_vit.utils.images import MOST_PIXELS, read_pixels


def in_tiles(trained, tiles):
    """Returns a trained model with another option `tiles` of its task; `None` for that of its recipe."""
    return trained if tiles is None else dataclasses.replace(trained, tiles=tiles)


def note_tiles(trained):
    """Writes into a model's metadata, for exported files, how large pictures are tiled, if its task does so."""
    if isinstance(trained.task, InTiles) and trained.task.whole:
        keep(trained.model, tiles=trained.task.tiles_facts(trained.size))


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
    return task.whole and task.gives != "image" and deep_files.is_named(path)


def is_large(task, path):
    """Returns whether a picture is read by windows and its mask is too large for memory."""
    try:
        return by_windows(task, path) and math.prod(bands.size_of(path)) > MOST_PIXELS
    except (ValueError, OSError):  # which reading it will tell
        return False
