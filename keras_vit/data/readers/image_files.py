"""Image files outside a data set, as evaluation sees them."""

import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_vit.data import deep_source
from keras_vit.data.augment import crops
from keras_vit.utils import bands, deep_files
from keras_vit.utils.images import read_pixels
from keras_vit.utils.value_range import by_band


class Rule(NamedTuple):
    """How images are resized, with the defaults of `keras_vit.config.Data`."""

    resize: Any = None
    method: str = "bilinear"
    antialias: bool = True
    crop_offset: str = "round"


def read_files(paths, size, data=None):
    """Returns image files as evaluation sees them.

    Args:
        paths: Paths of image files.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`, which determines how images are resized; `None` for its defaults.

    Returns:
        float32 array, `(files, height, width, channels)`, 0..255.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If a file cannot be read as an image, or `size` has other than 1 or 3 channels, unless `data` states
            how bands are read.
    """
    return np.stack([*map(reader(size, data), paths)])


def reader(size, data=None):
    """Returns the function from one path to the pixels of `read_files`, which several threads may call."""
    if data is not None and deep_source.options_of(data):
        return deep_reader(size, data)
    if size[2] not in (1, 3):
        raise ValueError(f"A model of image files must have 1 or 3 channels. Received: a model of {size[2]}")
    prepare, bands_of = preparation(size, data), None if data is None else deep_reader(size, data)

    def read(path):
        if bands_of and deep_files.is_named(path):  # TIFF of 8 bits
            return bands_of(path)
        return read_pixels(path, size[2], prepare)

    return read


def deep_reader(size, data):
    """Returns the function from the path of a picture of bands to its pixels as the model takes them, in its range."""
    cut = _cut(tuple(size), rule_of(data), "float32")
    reading, limits = bands.reading_of(data), bands.range_of(data)
    known = data.value_range is None or by_band(limits)

    def read(path):
        if known:
            bands.check_bits(path, limits)
        pixels = cut(deep_source.scaled(bands.read(path, reading, size[2]), data))
        return deep_source.in_units({"images": pixels}, data)["images"].numpy()

    return read


def rule_of(data):
    """Returns the `Rule` of a `keras_vit.config.Data`, or the default."""
    return Rule(*(getattr(data, name) for name in Rule._fields)) if data else Rule()


def preparation(size, data=None):
    """Returns the function from pixels of any height and width, uint8, to those of `read_files`."""
    rule = rule_of(data)

    def prepare(pixels):
        if rule.resize is None and pixels.shape == size:
            return pixels.astype("float32")
        return _cut(tuple(size), rule)(tf.constant(pixels)).numpy()

    return prepare


@functools.lru_cache(16)
def _cut(size, rule, dtype="uint8"):
    """Returns `evaluation_image` as a graph: a call takes a third of the time of its operations one by one."""
    function = tf.function(lambda pixels: crops.evaluation_image(pixels, size, rule), autograph=False)
    return function.get_concrete_function(tf.TensorSpec((None, None, size[2]), dtype))
