"""Whether pictures of any bands and depth can be read, and what their headers say; once for each file that changes."""

import functools
import math
from typing import NamedTuple

import numpy as np

from keras_vit.data.digests import DIGEST, digest_of_file
from keras_vit.data.known_files import KnownFiles
from keras_vit.utils import bands, deep_files
from keras_vit.utils.tiff_files import TYPES

RULES = 3  # raise it when a file of the same bytes may be judged otherwise, or a field means something else
FIELDS = (
    ("digest", "u1", (DIGEST,)),
    ("size", "u4", (2,)),  # width, height, as it is seen
    ("orientation", "u1"),
    ("bands", "u4"),
    ("pages", "u4"),  # that could be frames or bands, or 1
    ("type", "u1"),  # place in `TYPES`
    ("unknown", "u1"),  # `NAN`, `INFINITE` and `STATED`, whichever it has
    ("no_data", "f8"),  # the value of no data that it states, if it has such pixels; else 0
)
NAN, INFINITE, STATED = 1, 2, 4  # kinds of unknown pixels; `STATED` have the value of no data that a file states
AT_ONCE = 2**24  # values that are decoded together


class Header(NamedTuple):
    """What is known of a file."""

    bands: int
    pages: int
    dtype: str
    unknown: int
    no_data: float = 0.0

    def unmasked(self, no_data):
        """Returns which kinds of unknown pixels are left where `data.no_data` masks its own, 0 for none."""
        masked = {bands.NAN: NAN, bands.FILE: STATED}.get(no_data, 0)
        if self.unknown & STATED:
            if no_data == self.no_data or (no_data == bands.NAN and math.isnan(self.no_data)):
                masked |= STATED
            if no_data == bands.FILE and math.isnan(self.no_data):
                masked |= NAN
        return self.unknown & ~masked


def look_up(paths):
    """Returns a record of `FIELDS` for each file, and why others cannot be read, by position."""
    return _known().look_up(paths, "checking images")


def headers(paths):
    """Returns the `Header` of each of some files that can be read."""
    records, _ = look_up(list(map(str, paths)))
    return [
        Header(int(r["bands"]), int(r["pages"]), TYPES[r["type"]], int(r["unknown"]), float(r["no_data"]))
        for r in records
    ]


@functools.cache
def _known():
    return KnownFiles(f"deep {RULES}", FIELDS, lambda paths: list(map(_inspect, paths)))


def _inspect(path):
    """Returns a tuple of `FIELDS` for a file, or why it cannot be read."""
    try:
        raster = deep_files.opened(path, "bands")
        unknown = _unknown_in(raster)
        pages = 1
        try:
            deep_files.opened(path)
        except ValueError:  # its pages may be bands or frames
            pages = len(deep_files.frames(path))
        digest = digest_of_file(path)
    except (ValueError, OSError) as error:
        return str(error).removeprefix(f"{path!r} ").removesuffix(".")
    height, width, count = raster.shape
    no_data = raster.no_data if unknown & STATED else 0.0
    return (
        digest,
        (width, height),
        raster.orientation,
        count,
        pages,
        TYPES.index(raster.dtype.str[1:]),
        unknown,
        no_data,
    )


def _unknown_in(raster):
    """Decodes a picture, some rows at a time; returns which kinds of unknown pixels it has, 0 for none."""
    height, width, count = raster.shape
    step = max(AT_ONCE // (width * count) // raster.block[0], 1) * raster.block[0]
    found = 0
    for top in range(0, height, step):
        values = raster.read(top, 0, min(step, height - top), width)
        unknown = bands.is_unknown(values, bands.FILE, raster.no_data)
        if values.dtype.kind == "f":
            found |= (NAN if np.isnan(values).any() else 0) | (INFINITE if np.isinf(values).any() else 0)
        found |= STATED if unknown is not None and unknown.any() else 0
    return found
