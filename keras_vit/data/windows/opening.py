"""Pictures and masks of which windows are read: from tiles, strips and arrays; of other files by decoding them.

What must be decoded whole is decoded once for several crops and kept, up to `KEPT` bytes; `source` draws the crops of
an epoch in groups of pictures that fit.
"""

import collections
import math
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_vit.data import large_jpegs
from keras_vit.data.augment import masks
from keras_vit.utils import deep_files, images

GROUP = 2**30  # bytes of decoded pictures whose crops are mixed
KEPT = GROUP + 2**29  # bytes of decoded pictures in memory: a group, and the last picture of it
HEADER = 2**22  # bytes of a picture whose windows are read from its file: the places of its tiles
TOO_LARGE = (
    f"is too large: it has more than {images.MOST_PIXELS // 10**6} million pixels, and its format has no windows. Save "
    "it as a tiled TIFF"
)
FEW = 4  # crops of a JPEG, up to which windows are quicker than to decode all of it once


class Picture(NamedTuple):
    """A picture, or a mask of one band, of which windows can be read. No file is open between two reads."""

    shape: tuple[int, int, int]  # (height, width, channels)
    dtype: np.dtype
    read: Callable  # (top, left, height, width): an array (height, width, channels)
    decoded: bool = False  # whether `read` decodes the whole picture each time


def of_array(array):
    """Returns the `Picture` of an array `(height, width, channels)`."""
    return Picture(array.shape, array.dtype, lambda y, x, height, width: array[y : y + height, x : x + width])


def opened(item, size, channels, crops):
    """Opens an image. Nothing but the beginning of a file is read.

    Args:
        item: The path of a file; the bytes of one; or an array `(height, width, channels)`.
        size: Its `(height, width)`.
        channels: Those of the model.
        crops: Number of windows that will be read of it.

    Raises:
        ValueError: If it is too large to be decoded whole, and its format has no windows.
    """
    if isinstance(item, np.ndarray):
        return of_array(item)
    large, is_jpeg = math.prod(size) > images.MOST_PIXELS, large_jpegs.is_jpeg(_head(item))
    if large and not is_jpeg:
        raise ValueError(f"{_name(item)} {TOO_LARGE}.")
    shape, dtype = (*size, channels), np.dtype("uint8")
    if large or (is_jpeg and crops <= FEW):
        return Picture(shape, dtype, _jpeg_windows(item, size, channels))
    return Picture(shape, dtype, _decoding(lambda: _pixels(item, channels)), decoded=True)


def opened_mask(item, size):
    """Opens a segmentation mask: the path or the bytes of a PNG of class indices, or an array `(height, width, 1)`."""
    if isinstance(item, np.ndarray):
        return of_array(item)
    if not isinstance(item, bytes) and masks.is_raster(item):
        raster = deep_files.opened(item, labels=True)
        return Picture((*size, 1), np.dtype("uint8"), lambda *window: raster.read(*window).astype("uint8"))
    if math.prod(size) > images.MOST_PIXELS:
        raise ValueError(f"{_name(item)} {TOO_LARGE}.")
    decode = _decoding(lambda: images.mask_pixels(item if isinstance(item, bytes) else images.encoded(item))[..., None])
    return Picture((*size, 1), np.dtype("uint8"), decode, decoded=True)


def _head(item):
    if isinstance(item, bytes):
        return item[:16]
    with open(item, "rb") as file:
        return file.read(16)


def _name(item):
    return "An image" if isinstance(item, bytes) else repr(os.fsdecode(item))


def _pixels(item, channels):
    return images.decoded(item, channels) if isinstance(item, bytes) else images.read_pixels(item, channels)


def _decoding(decode):
    """Returns the function `Picture.read` of what is decoded whole."""

    def read(top, left, height, width):
        return decode()[top : top + height, left : left + width]

    return read


def _jpeg_windows(item, size, channels):
    """Returns the function `Picture.read` of a JPEG of which windows are read."""

    def read(*window):
        data = item if isinstance(item, bytes) else images.encoded(item, math.inf)
        return large_jpegs.window_of(data, size, channels, *window)

    return read


class Shelf:
    """Pictures by their places: opened when a window of them is read first, and kept for the next one.

    Several threads may read at once. Pictures that were read last are kept, up to `most` bytes: of those that are
    decoded whole, their pixels.

    Args:
        open_one: Function from a place to a `Picture`.
        most: Bytes.
    """

    def __init__(self, open_one, most=KEPT):
        self.open_one = open_one
        self.most = most
        self.kept = collections.OrderedDict()  # pictures and their bytes by place, the one read last at the end
        self.bytes = 0
        self.lock = threading.Lock()
        self.turns = collections.defaultdict(threading.Lock)  # by place: of two threads, one decodes

    def read(self, place, start, size):
        """Returns a window of a picture, `(height, width, channels)`; what is beyond the picture is left out."""
        picture = self._picture(place)
        height, width = (min(side, whole - first) for side, whole, first in zip(size, picture.shape, start))
        return picture.read(*start, height, width)

    def _picture(self, place):
        with self.lock:
            turn = self.turns[place]
        with turn:
            with self.lock:
                if place in self.kept:
                    self.kept.move_to_end(place)
                    return self.kept[place][0]
            picture, taken = self.open_one(place), HEADER
            if picture.decoded:
                picture = of_array(picture.read(0, 0, *picture.shape[:2]))
                taken = math.prod(picture.shape) * picture.dtype.itemsize
            with self.lock:
                self.kept[place] = picture, taken
                self.bytes += taken
                while self.bytes > self.most and len(self.kept) > 1:
                    self.bytes -= self.kept.popitem(last=False)[1][1]
            return picture
