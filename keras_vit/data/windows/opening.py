"""Pictures and masks of which windows are read: from tiles, strips and arrays; of other files by decoding them.

What must be decoded whole is decoded once for several crops and kept, up to `KEPT` bytes; `source` draws the crops of
an epoch in groups of pictures that fit.
"""

import collections
import math
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_vit.data import large_jpegs
from keras_vit.data.augment import masks
from keras_vit.utils import bands, deep_files, images
from keras_vit.utils.raster import NOTHING

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
    finish: Callable | None = None  # what becomes of such an array


def of_array(array):
    """Returns the `Picture` of an array `(height, width, channels)`."""
    return Picture(array.shape, array.dtype, lambda y, x, height, width: array[y : y + height, x : x + width])


def opened(item, size, channels, crop, crops, reading=None):
    """Opens an image. Nothing but the beginning of a file is read.

    Args:
        item: The path of a file; the bytes of one; or an array `(height, width, channels)`.
        size: Its `(height, width)`.
        channels: Those of the model.
        crop: `(height, width)` of the windows that will be read of it.
        crops: Number of these windows.
        reading: A `bands.Reading` of a source of pictures of any bands and depth, else `None`.

    Raises:
        ValueError: If it is too large to be decoded whole, and its format has no windows.
    """
    if isinstance(item, np.ndarray):
        return of_array(item)
    large, name = math.prod(size) > images.MOST_PIXELS, "An image" if isinstance(item, bytes) else repr(str(item))
    if reading is not None and deep_files.is_deep(item):
        raster, finish = bands.by_windows(item, reading, channels)
        decoded = raster.block != NOTHING and (_at_once(raster.block, size, crop) * crops >= math.prod(size))
        if large and decoded and raster.block == size:
            raise ValueError(f"{name} {TOO_LARGE}.")
        return Picture(raster.shape, raster.dtype, raster.read, decoded and not large, finish)
    if reading is not None:
        return Picture(
            (*size, channels), np.dtype("float32"), _decoding(lambda: bands.read(item, reading, channels)), True
        )
    is_jpeg = large_jpegs.is_jpeg(_head(item))
    if large and not is_jpeg:
        raise ValueError(f"{name} {TOO_LARGE}.")
    shape, dtype = (*size, channels), np.dtype("uint8")
    if large or (is_jpeg and crops <= FEW):
        return Picture(shape, dtype, _jpeg_windows(item, size, channels))
    return Picture(shape, dtype, _decoding(lambda: _pixels(item, channels)), decoded=True)


def opened_mask(item, size):
    """Opens a segmentation mask: the path or the bytes of one, or an array `(height, width, 1)`."""
    if isinstance(item, np.ndarray):
        return of_array(item)
    if not isinstance(item, bytes) and masks.is_raster(item):
        raster = deep_files.opened(item, labels=True)
        return Picture((*size, 1), np.dtype("uint8"), lambda *window: raster.read(*window).astype("uint8"))
    decode = _decoding(lambda: images.mask_pixels(item if isinstance(item, bytes) else images.encoded(item))[..., None])
    return Picture((*size, 1), np.dtype("uint8"), decode, decoded=True)


def _at_once(block, size, crop):
    """Returns how many pixels of a picture of tiles or strips are decoded for a crop, at most."""
    sides = (min((math.ceil(own / side) + 1) * side, whole) for side, whole, own in zip(block, size, crop))
    return math.prod(sides)


def _head(item):
    if isinstance(item, bytes):
        return item[:16]
    with open(item, "rb") as file:
        return file.read(16)


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
        window = picture.read(*start, height, width)
        return window if picture.finish is None else picture.finish(window)

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
                picture = of_array(picture.read(0, 0, *picture.shape[:2]))._replace(finish=picture.finish)
                taken = math.prod(picture.shape) * picture.dtype.itemsize
            with self.lock:
                self.kept[place] = picture, taken
                self.bytes += taken
                while self.bytes > self.most and len(self.kept) > 1:
                    self.bytes -= self.kept.popitem(last=False)[1][1]
            return picture
