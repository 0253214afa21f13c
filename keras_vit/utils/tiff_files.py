"""TIFF files, read by windows with tifffile: strips and tiles, one or several pages.

What is read is the numbers. Of GeoTIFF the names of the bands and the value of no data are read; coordinates,
overviews, masks, scales and offsets are not.
"""

import itertools
import logging
import math
import os
from typing import Any, NamedTuple

import numpy as np

from keras_vit.utils.band_names import names_of
from keras_vit.utils.extras import need
from keras_vit.utils.raster import NOTHING, Raster, upright

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two of BigTIFF
TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8")
GRAY, RGB, LABELS = 1, 2, {0: "white as 0", 3: "a palette"}  # photometric interpretations
JPEG, YCBCR = (6, 7, 34892, 33007), 6
RATIOS = {1: 1, 5: 1400, 8: 1032, 32773: 64, 32946: 1032}  # the most that a byte can become, by compression
RATIO = 33000  # of others: Zstandard's
LEFT_OUT = 0b101  # bits of a page's kind: overviews, masks
ORIENTATION, NO_DATA = 274, 42113  # tags
MOST_PAGES = 100_000
SMALL = 4  # a last axis this many times shorter than the others is one of bands


class _RefusedError(ValueError):
    """Why a file is not read, in words of ours."""


class _Page(NamedTuple):
    """A page's segments: strips or tiles."""

    offsets: tuple
    counts: tuple  # of bytes
    block: tuple[int, int]
    columns: int  # of segments
    planes: int  # whose bands are in segments of their own
    samples: int  # bands in a segment
    decode: Any
    stored: Any  # the type of rows that can be read without decoding, or `None`
    tables: Any  # of JPEG
    fill: float  # of segments that are not in the file


def rasters(path, pages=None, labels=False):
    """Returns the `Raster` of each frame of a TIFF, after checks of its header; one if it is no clip.

    Args:
        path: The file.
        pages: What its pages are: `"bands"` of one picture, in the file's order, or `"frames"` of a clip; `None` for a
            file with one page, or whose pages are channels by ImageJ's or tifffile's metadata.
        labels: Whether values are labels: palettes are then read as indices.

    Raises:
        ImportError: Without the extra `tiff`.
        ValueError: Why the file cannot be used: it is damaged, or has values or pages that are not read.
    """
    need("TIFF", "tiff", "tifffile", "imagecodecs")
    import tifffile

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what it says of damaged files is raised below
    try:
        with tifffile.TiffFile(path, is_ome=False) as file:  # OME's metadata may name other files
            axes, found, start = _pages(file)
            for page in found:
                _check(page, labels)
            if len({(page.shape, page.dtype, page.compression) for page in found}) > 1:
                raise _RefusedError("must have pages of one shape and type")
            first, count, size = found[0], math.prod(n for _, n in axes), os.path.getsize(path)
            read = [_page(page) for page in found] if start is None else _unlisted(first, start, count)
            for page in read:
                _check_held(page, first, size)
            names, no_data = names_of(file, found, count * first.samplesperpixel), _no_data(first)
            number = first.tags.valueof(ORIENTATION, 1)
    except _RefusedError as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # of a damaged file: tifffile raises many kinds
        raise ValueError(f"is a damaged TIFF: {_reason(error)}") from None
    dtype = np.dtype(first.dtype).newbyteorder("=")
    results = []
    for places in _frames(axes, pages):
        parts = [read[place] for place in places]
        shape = (first.imagelength, first.imagewidth, len(parts) * first.samplesperpixel)
        own = names if len(parts) == len(read) else ()
        block = parts[0].block if parts[0].stored is None else NOTHING
        raster = Raster(shape, dtype, _window(path, parts, dtype), block, own, no_data)
        results.append(upright(raster, number))
    return results


def _pages(file):
    """Returns the axes over the pages, `(letter, length)` each, the pages, and where they start if one is listed."""
    every = [page.aspage() for page in _listed(file.pages)]
    series = file.series if file.is_imagej or file.is_shaped else ()
    if len(series) == 1:
        one = series[0]
        axes = [pair for pair in zip(one.axes, one.shape) if pair[0] not in "YXS"]
        if one.kind == "shaped" and len(one.shape) == 3 and one.axes[-2:] == "YX" and "C" not in one.axes:
            _refuse_last(one.shape)
        count = math.prod(length for _, length in axes)
        if count == len(every):
            return axes, every, None
        if len(every) == 1 and one.dataoffset is not None:
            return axes, every, one.dataoffset
    every = [page for page in every if not page.subfiletype & LEFT_OUT] or every[:1]
    return [("I", len(every))], every, None


def _listed(pages):
    """Yields the pages of a file one by one; raises ValueError if the list has no end."""
    places = set()
    for i in itertools.count():
        try:
            page = pages[i]
        except IndexError:
            return
        if page.offset in places:
            raise _RefusedError("is a damaged TIFF: its list of pages is a circle")
        if i == MOST_PAGES:
            raise _RefusedError(f"has more than {MOST_PAGES} pages")
        places.add(page.offset)
        yield page


def _refuse_last(shape):
    """Raises ValueError for `(height, width, bands)` that tifffile has written row by row, a page each."""
    if shape[2] * SMALL <= min(shape[:2]):
        raise _RefusedError(
            f"has {shape[0]} pages of {shape[1]} x {shape[2]} pixels, rows of a picture of {shape[2]} bands: write it "
            'with photometric="minisblack", planarconfig="contig"'
        )


def _check(page, labels):
    """Raises ValueError for a page whose header is damaged, or with values that are not read."""
    sides = (page.imagelength, page.imagewidth, page.samplesperpixel)
    if min(*sides, page.imagedepth, page.rowsperstrip if not page.is_tiled else page.tilelength * page.tilewidth) < 1:
        raise _RefusedError(f"is a damaged TIFF: its shape is {sides}")
    dtype, bits = page.dtype, page.bitspersample
    if dtype is None or dtype.str[1:] not in TYPES or bits != 8 * dtype.itemsize:
        received = f"{bits} bits" if dtype is None or dtype.kind in "ui" else dtype.name
        raise _RefusedError(f"must have integers of 8, 16 or 32 bits, or floats, in each band. Received: {received}")
    if page.imagedepth != 1 or page.tiledepth != 1:
        raise _RefusedError("has tiles of several planes, which are not read")
    shade = int(page.photometric)
    if shade in LABELS and not labels:
        raise _RefusedError(f"stores {LABELS[shade]}, which is not read: save it as gray or RGB")
    if shade not in (GRAY, RGB, *LABELS) and not (shade == YCBCR and page.compression in JPEG):
        raise _RefusedError(f"must be gray, RGB or bands. Received: {getattr(page.photometric, 'name', shade)}")


def _page(page):
    """Returns the `_Page` of a page of tifffile."""
    tiled, apart = page.is_tiled, page.planarconfig == 2
    block = (page.tilelength, page.tilewidth) if tiled else (min(page.rowsperstrip, page.imagelength), page.imagewidth)
    planes, samples = (page.samplesperpixel, 1) if apart else (1, page.samplesperpixel)
    plain = not tiled and page.compression == 1 and page.predictor == 1 and page.fillorder == 1
    stored = page.dtype.newbyteorder(page.parent.byteorder) if plain else None
    columns, tables = math.ceil(page.imagewidth / block[1]), page.jpegtables
    segments = (tuple(page.dataoffsets), tuple(page.databytecounts))
    return _Page(*segments, block, columns, planes, samples, page.decode, stored, tables, page.nodata)


def _unlisted(page, start, count):
    """Returns the `_Page` of each of many pages, of which the file lists the first alone: they follow each other."""
    first = _page(page)
    size = page.imagelength * page.imagewidth * page.samplesperpixel * page.dtype.itemsize
    if first.stored is None or first.planes > 1:
        raise _RefusedError("lists one page of many, which is read of uncompressed ones only")
    block = (page.imagelength, page.imagewidth)
    return [first._replace(offsets=(start + i * size,), counts=(size,), block=block) for i in range(count)]


def _check_held(page, first, size):
    """Raises ValueError unless a file of `size` bytes can hold a page of the shape, type and compression of `first`."""
    rows = math.ceil(first.imagelength / page.block[0])
    expected = rows * page.columns * page.planes
    if len(page.offsets) != expected or len(page.counts) != expected:
        raise _RefusedError(f"is a damaged TIFF: it lists {len(page.offsets)} strips or tiles of {expected}")
    offsets, counts = (np.array(values, "int64") for values in (page.offsets, page.counts))
    if counts.min() < 0 or offsets.min() < 0 or (offsets + counts).max() > size:
        raise _RefusedError(f"is cut off: it names bytes to {(offsets + counts).max()}, and has {size}")
    lines = np.tile(np.repeat(np.minimum(page.block[0], first.imagelength - page.block[0] * np.arange(rows)),
                              page.columns), page.planes)  # fmt: skip
    lines = np.full_like(lines, page.block[0]) if first.is_tiled else lines
    needed = lines * page.block[1] * page.samples * first.dtype.itemsize
    held = counts * RATIOS.get(int(first.compression), RATIO)
    if ((held < needed) & (counts > 0)).any() or min(held.sum(), size * RATIO) * 2 < needed.sum():
        raise _RefusedError(
            f"is a damaged TIFF: it claims {first.imagelength} x {first.imagewidth} pixels, which its {size} bytes "
            "cannot hold"
        )


def _frames(axes, pages):
    """Returns the places of the pages of each frame."""
    places = np.arange(math.prod(length for _, length in axes)).reshape([length for _, length in axes])
    channels = [i for i, (letter, _) in enumerate(axes) if letter == "C"]
    others = [i for i in range(places.ndim) if i not in channels]
    many = math.prod(places.shape[i] for i in others)
    if pages == "frames":
        return places.transpose([*others, *channels]).reshape(many, -1)
    if pages is None and many > 1:
        raise ValueError(f'has {many} pages: say what they are, pages="bands" or pages="frames"')
    return places.reshape(1, -1)


def _window(path, pages, dtype):
    """Returns the function `Raster.window` of pages whose bands follow each other."""
    bands = pages[0].planes * pages[0].samples

    def window(top, left, height, width):
        values = np.empty((height, width, len(pages) * bands), dtype)
        try:
            with open(path, "rb") as file:
                for i, page in enumerate(pages):
                    _fill(values[..., i * bands : (i + 1) * bands], page, file, top, left)
        except Exception as error:  # any error of a decoder is a fault of this file
            raise ValueError(f"{os.fsdecode(path)!r} is a damaged TIFF: {_reason(error)}.") from None
        return values

    return window


def _fill(values, page, file, top, left):
    """Writes the window of a page at `(top, left)` into an array, `(height, width, bands)`."""
    (height, width, _), (tall, wide) = values.shape, page.block
    per_plane = len(page.offsets) // page.planes
    for plane in range(page.planes):
        into = values[..., plane * page.samples : (plane + 1) * page.samples]
        for row in range(top // tall, (top + height - 1) // tall + 1):
            for column in range(left // wide, (left + width - 1) // wide + 1):
                index, first = plane * per_plane + row * page.columns + column, (row * tall, column * wide)
                rows = slice(max(top, first[0]), min(top + height, first[0] + tall))
                columns = slice(max(left, first[1]), min(left + width, first[1] + wide))
                place = into[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
                rows = slice(rows.start - first[0], rows.stop - first[0])
                columns = slice(columns.start - first[1], columns.stop - first[1])
                place[...] = _part(page, file, index, rows, columns)


def _part(page, file, index, rows, columns):
    """Returns some rows and columns of a segment, `(rows, columns, samples)`, or what fills one that is not there."""
    if not page.counts[index]:
        return page.fill
    if page.stored is not None:
        line = page.block[1] * page.samples * page.stored.itemsize
        data = _bytes(file, page.offsets[index] + rows.start * line, (rows.stop - rows.start) * line)
        return np.frombuffer(data, page.stored).reshape(-1, page.block[1], page.samples)[:, columns]
    data = _bytes(file, page.offsets[index], page.counts[index])
    return page.decode(data, index, **({"jpegtables": page.tables} if page.tables else {}))[0][0, rows, columns]


def _bytes(file, start, count):
    file.seek(start)
    data = file.read(count)
    if len(data) < count:
        raise ValueError("it is cut off")
    return data


def _no_data(page):
    """Returns the value of no data that GDAL's tag states, or `None`."""
    return float(page.nodata) if page.tags.get(NO_DATA) is not None else None


def _reason(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")
