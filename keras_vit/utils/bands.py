"""Pictures of any bands and depth as a model sees them: which bands, and what becomes of pixels without data."""

import math
import os
from typing import Any, NamedTuple

import numpy as np

from keras_vit.utils import checks, deep_files
from keras_vit.utils.images import GRAY_MODES, MOST_OBLONG, MOST_PIXELS, encoded, opened, plain_pixels
from keras_vit.utils.raster import Raster
from keras_vit.utils.value_range import by_band, of_pairs

NAN, FILE = "nan", "file"  # words of `no_data`
ANY = "any"  # all that cannot be a number of a picture: NaN, infinity, and the value that the file states
MOST_OF_EIGHT = 2 * 255  # a range that ends beyond is not one of pictures of 8 bits
KEPT = "bands"  # of a model's metadata: how its pictures are read


class Reading(NamedTuple):
    """How pictures become arrays; the fields are the options of `keras_vit.config.Data`.

    Attributes:
        bands: Numbers of bands, from 1, or names, in the order that the model takes them; `None` for all.
        pages: What the pages of a TIFF are: `"bands"`, or `None` for files that have one or say it themselves.
        no_data: The value of pixels that are unknown; `"nan"`; `"file"` for the value that each file states; or `None`.
    """

    bands: Any = None
    pages: Any = None
    no_data: Any = None


def reading_of(data):
    """Returns the `Reading` of a `keras_vit.config.Data`."""
    return Reading(data.bands, data.pages, data.no_data)


def range_of(data):
    """Returns the range of the pixels of a `Data`, `(low, high)` or `(lows, highs)`: 0 to 255 where it states none."""
    return checks.BYTES if data.value_range is None else of_pairs(data.value_range)


def check_options(data):
    """Raises ValueError for options of a `Data` that no file can meet."""
    chosen = data.bands
    if chosen is not None and not (chosen and all(isinstance(band, str) or band > 0 for band in chosen)):
        raise ValueError(
            f"data.bands must be numbers of bands, the first of which is 1, or names. Received: {checks.shown(chosen)}"
        )
    if not isinstance(data.no_data, (str, type(None))):
        checks.number(no_data=data.no_data)
    if isinstance(data.value_range, tuple):
        of_pairs(data.value_range)


def kept_in(metadata):
    """Returns the `Reading` that a model's metadata state, or `None`."""
    kept = metadata.get(KEPT)
    return Reading(*(kept.get(name) for name in Reading._fields)) if isinstance(kept, dict) else None


def places_of(raster, bands):
    """Returns the places of bands in a raster, from 0.

    Args:
        raster: A `Raster`.
        bands: As in `Reading`.

    Raises:
        ValueError: For a number or a name that it does not have.
    """
    if bands is None:
        return list(range(raster.shape[2]))
    known = {name: i for i, name in enumerate(raster.names)} | {i + 1: i for i in range(raster.shape[2])}
    other = next((band for band in bands if band not in known), None)
    if other is not None:
        names = f", or {', '.join(map(repr, raster.names[:20]))}" if raster.names else ", and has no names of bands"
        raise ValueError(f"has the bands 1 to {raster.shape[2]}{names}. Received: data.bands with {other!r}")
    return [known[band] for band in bands]


def check_bands(path, reading):
    """Raises ValueError, with the file's name, for bands that a file does not have."""
    try:
        places_of(_raster(path, reading), reading.bands)
    except ValueError as error:
        raise ValueError(f"{os.fsdecode(path)!r} {str(error).removesuffix('.')}.") from None


def read(path, reading, channels=None):
    """Returns the pixels of a file, float32 `(height, width, bands)`, in the file's own numbers.

    In each band, a pixel without data gets the value of the nearest pixel that has some, so that resizing mixes it with
    no other number; a band without any becomes NaN, which `scaled` turns into its lowest value.

    Args:
        path: What `deep_files.opened` reads; or another picture, as three bands, or one if it is gray.
        reading: A `Reading`.
        channels: Number of bands that the model takes; one band is repeated for three. `None` for any.

    Raises:
        ValueError: For a damaged or too large file, another number of bands, or pixels without data where `reading`
            does not say what they are.
    """
    raster, pixels_of = by_windows(path, reading, channels)
    try:
        check_size(raster.shape)
    except ValueError as error:
        raise ValueError(f"{os.fsdecode(path)!r} {error}.") from None
    return pixels_of(raster.whole())


def by_windows(path, reading, channels=None):
    """Returns the `Raster` of a file, and the function from a window of its values to what `read` returns of it.

    Args:
        path, reading, channels: As in `read`. The file may be of any size.
    """
    raster, name = _raster(path, reading), os.fsdecode(path)
    try:
        places = places_of(raster, reading.bands)
    except ValueError as error:
        raise ValueError(f"{name!r} {error}.") from None
    if channels not in (None, len(places)) and (channels, len(places)) != (3, 1):
        pick = f": pick them, such as data.bands={tuple(range(1, channels + 1))}" if len(places) > channels else ""
        raise ValueError(f"{name!r} must have the {channels} bands that the model takes{pick}. Received: {len(places)}")

    def pixels_of(values):
        values = values[..., places]
        unknown = is_unknown(values, reading.no_data, raster.no_data)
        values = values.astype("float32")
        lost = ~np.isfinite(values) if unknown is None else ~np.isfinite(values) & ~unknown
        if np.isnan(values[lost]).any():
            raise ValueError(f"{name!r} has NaN or infinite pixels: data.no_data='nan' masks NaN.")
        if lost.any():
            raise ValueError(f"{name!r} must have finite numbers, or NaN. Received: infinite pixels.")
        stated = is_unknown(values if unknown is None else values[~unknown], FILE, raster.no_data)
        if stated is not None and stated.any():
            value = f"{raster.no_data:g}"
            raise ValueError(f"{name!r} has pixels of its value of no data, {value}: data.no_data='file' masks them.")
        if unknown is not None and unknown.any():
            values = filled(values, unknown)
        return np.repeat(values, 3, axis=2) if (channels, values.shape[2]) == (3, 1) else values

    return raster, pixels_of


def drawn(metadata, count):
    """Returns a sentence about how pictures of a model of `count` bands are drawn; `""` of one that sees colors."""
    reading = kept_in(metadata)
    if reading is None or count < 3 or (count == 3 and reading.bands is None):
        return ""
    names = [str(name) for name in (reading.bands or range(1, count + 1))[:3]]
    return f"Pictures show bands {names[0]}, {names[1]} and {names[2]} in red, green and blue, each in its range."


def check_bits(path, value_range):
    """Raises ValueError for a picture of more bits than a model takes, or of 8 where its numbers must have more.

    Args:
        path: The file.
        value_range: The model's range: 0 to 255, or numbers for each band; of any other range nothing is checked.
    """
    dtype = deep_files.opened(path, "bands").dtype if deep_files.is_deep(path) else np.dtype("uint8")
    if value_range == checks.BYTES and dtype != "uint8":
        raise ValueError(
            f"{os.fsdecode(path)!r} must have 8 bits for a model of pixels from 0 to 255. Received: {dtype.name}"
        )
    if by_band(value_range) and max(value_range[1]) > MOST_OF_EIGHT and dtype == "uint8":
        raise ValueError(
            f"{os.fsdecode(path)!r} must have more than 8 bits for a model of numbers up to {max(value_range[1]):g}. "
            "Received: 8 bits"
        )


def count_of(path):
    """Returns the number of bands of a picture in a file, from its header."""
    if deep_files.is_deep(path):
        return deep_files.opened(path, "bands").shape[2]
    with opened(encoded(path)) as image:
        return _colors(image)


def size_of(path):
    """Returns the `(height, width)` of a picture in a file, from its header."""
    return deep_files.opened(path, "bands").shape[:2]


def check_size(shape):
    """Raises ValueError for a picture that is too large or too oblong to be decoded whole."""
    height, width, _ = shape
    if math.prod(shape) > 3 * MOST_PIXELS:
        raise ValueError(f"is too large: it has {height} x {width} pixels of {shape[2]} bands")
    if max(height, width) > MOST_OBLONG * min(height, width):
        raise ValueError(f"is too oblong: it has {height} x {width} pixels, an aspect ratio over {MOST_OBLONG}:1")


def is_unknown(values, no_data, stated):
    """Returns which values are of no data, or `None`.

    Args:
        values: Array of the file's own type.
        no_data: As in `Reading`.
        stated: The value that the file states, or `None`.
    """
    if no_data == ANY:
        known = is_unknown(values, FILE, stated)
        return ~np.isfinite(values) if known is None else ~np.isfinite(values) | known
    value = {NAN: math.nan, FILE: stated}.get(no_data, no_data)
    if value is None:
        return None
    if math.isnan(value):
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    return values == value


def filled(values, unknown):
    """Returns values, `(height, width, bands)`, whose unknown ones are those of the nearest known pixel of the band."""
    from scipy.ndimage import distance_transform_edt

    values = values.copy()
    for band in range(values.shape[2]):
        where = unknown[..., band]
        if where.all():
            values[..., band] = np.nan
        elif where.any():
            nearest = distance_transform_edt(where, return_distances=False, return_indices=True)
            values[..., band] = values[(*nearest, band)]
    return values


def _raster(path, reading):
    if deep_files.is_deep(path):
        return deep_files.opened(path, reading.pages)
    with opened(encoded(path)) as image:
        pixels = plain_pixels(image, _colors(image))

    def window(top, left, height, width):
        return pixels[top : top + height, left : left + width]

    return Raster(pixels.shape, pixels.dtype, window, pixels.shape[:2])


def _colors(image):
    """Returns the number of bands of a Pillow image of 8 bits."""
    return 1 if image.mode in GRAY_MODES else 3
