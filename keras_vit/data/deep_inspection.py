"""Whether pictures of any bands and depth can be read, and what their headers say; once for each file that changes."""

import functools
from typing import NamedTuple

import numpy as np

from keras_vit.data.digests import DIGEST, digest_of_file
from keras_vit.data.known_files import KnownFiles
from keras_vit.utils import bands, deep_files
from keras_vit.utils.tiff_files import TYPES

RULES = 1  # raise it when a file of the same bytes may be judged otherwise, or a field means something else
FIELDS = (
    ("digest", "u1", (DIGEST,)),
    ("size", "u4", (2,)),  # width, height
    ("bands", "u4"),
    ("pages", "u4"),  # that could be frames or bands, or 1
    ("type", "u1"),  # place in `TYPES`
    ("unknown", "u1"),  # whether it has NaN, infinity, or the value of no data that it states
)
AT_ONCE = 2**24  # values that are decoded together


class Header(NamedTuple):
    """What is known of a file."""

    bands: int
    pages: int
    dtype: str
    unknown: bool


def look_up(paths):
    """Returns a record of `FIELDS` for each file, and why others cannot be read, by position."""
    return _known().look_up(paths, "checking images")


def headers(paths):
    """Returns the `Header` of each of some files that can be read."""
    records, _ = look_up(list(map(str, paths)))
    return [Header(int(r["bands"]), int(r["pages"]), TYPES[r["type"]], bool(r["unknown"])) for r in records]


@functools.cache
def _known():
    return KnownFiles(f"deep {RULES}", FIELDS, lambda paths: list(map(_inspect, paths)))


def _inspect(path):
    """Returns a tuple of `FIELDS` for a file, or why it cannot be read."""
    try:
        raster = deep_files.opened(path, "bands")
        unknown = _has_unknown(raster)
        pages = 1
        try:
            deep_files.opened(path)
        except ValueError:  # its pages may be bands or frames
            pages = len(deep_files.frames(path))
        digest = digest_of_file(path)
    except (ValueError, OSError) as error:
        return str(error).removeprefix(f"{path!r} ").removesuffix(".")
    height, width, count = raster.shape
    return digest, (width, height), count, pages, TYPES.index(raster.dtype.str[1:]), unknown


def _has_unknown(raster):
    """Decodes a picture, some rows at a time; returns whether pixels are unknown."""
    height, width, count = raster.shape
    step = max(AT_ONCE // (width * count) // raster.block[0], 1) * raster.block[0]
    found = False
    for top in range(0, height, step):
        values = raster.read(top, 0, min(step, height - top), width)
        unknown = bands.is_unknown(values, bands.FILE, raster.no_data)
        found |= not np.isfinite(values).all() or (unknown is not None and bool(unknown.any()))
    return found
