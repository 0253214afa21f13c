"""What is kept of each picture: a hash of its pixels, which finds equal ones, and a thumbnail, which finds others.

Files that did not change since are not read again, also after an interruption: `data.known_files` remembers them.
"""

import functools
import hashlib
from typing import NamedTuple

import numpy as np

from keras_vit.inspecting import crops
from keras_vit.utils import bands, deep_files, images

RULES = 2  # raise it when a picture may get another hash or thumbnail
DIGEST = 16  # bytes of a hash
SIDE = 8  # pixels of a thumbnail's side
ENOUGH = 4 * crops.SIDE  # pixels of a side: a larger picture is made smaller first, by whole numbers
GRAY = np.array([0.299, 0.587, 0.114], "float32")  # brightness of red, green and blue
FIELDS = (
    ("digest", "u1", (DIGEST,)),
    ("thumb", "u1", (SIDE, SIDE, 3)),
    ("gray", "u1", (crops.SIDE, crops.SIDE)),
)


class Scanned(NamedTuple):
    """What is known of the pixels of many pictures."""

    digests: np.ndarray  # uint8, (pictures, DIGEST); zeros for one that cannot be read
    thumbs: np.ndarray  # uint8, (pictures, SIDE, SIDE, 3)
    grays: np.ndarray  # uint8, a larger one without colors, (pictures, crops.SIDE, crops.SIDE)
    faults: dict  # why pictures cannot be read, by their positions


def scan(pictures):
    """Reads all pictures; returns `Scanned`, about 500 bytes for each.

    Args:
        pictures: A `Pictures`.
    """
    if pictures.files:
        records, faults = _known().look_up([str(path) for path in pictures.images], "reading pictures")
    else:
        records, faults = np.zeros(len(pictures), [*FIELDS]), {}
        for i, image in enumerate(pictures.images):
            found = _result(lambda image=image: summary(pixels_of(image)))
            if isinstance(found, str):
                faults[i] = found
            else:
                records[i] = found
    for i in faults:
        records[i] = np.zeros((), records.dtype)
    return Scanned(records["digest"], records["thumb"], records["gray"], dict(sorted(faults.items())))


def pixels_of(image):
    """Returns the pixels of an image as it is in memory, uint8 `(height, width, 3)`: an array, or an encoded file."""
    if isinstance(image, bytes):
        return images.decoded(image, 3)
    return np.repeat(image, 3, -1) if image.shape[-1] == 1 else image[..., :3]


def summary(pixels):
    """Returns the hash and the thumbnails of a picture, uint8 `(height, width, 3)`: what `FIELDS` names."""
    digest = hashlib.blake2b(str(pixels.shape).encode(), digest_size=DIGEST)
    digest.update(np.ascontiguousarray(pixels).data)
    parts = means(pixels, crops.SIDE)
    thumb = parts.reshape(SIDE, crops.SIDE // SIDE, SIDE, crops.SIDE // SIDE, 3).mean((1, 3))
    return np.frombuffer(digest.digest(), "uint8"), np.round(thumb).astype("u1"), np.round(parts @ GRAY).astype("u1")


def means(pixels, side):
    """Returns the means of equal parts of a picture, float32 `(side, side, 3)`, to the fraction of a pixel.

    So a copy of another size has the same ones: resampling counts whole pixels, which are too few in small pictures.
    """
    from PIL import Image

    factor = min(pixels.shape[:2]) // ENOUGH
    pixels = np.asarray(Image.fromarray(pixels).reduce(factor)) if factor > 1 else pixels
    down, across = (_parts(length, side) for length in pixels.shape[:2])
    return np.einsum("yh,hwc,xw->yxc", down, pixels.astype("float32"), across, optimize=True)


@functools.lru_cache(64)
def _parts(length, side):
    """Returns the means of equal parts of a line as a matrix, `(side, length)`."""
    edges, pixel = np.linspace(0, length, side + 1), np.arange(length)
    covered = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return (np.maximum(covered, 0) * side / length).astype("float32")


@functools.cache
def _known():
    from keras_vit.data.known_files import KnownFiles

    return KnownFiles(f"pictures {RULES}", FIELDS, _read)


def _read(paths):
    return [_result(lambda path=path: _summary_of(path), path) for path in paths]


def _summary_of(path):
    """Returns the `summary` of a file; of a picture of bands with a hash of all their numbers."""
    if not deep_files.is_named(path):
        return images.read_pixels(path, 3, summary)
    values = _bands_of(path)
    digest = hashlib.blake2b(f"{values.shape} {values.dtype}".encode(), digest_size=DIGEST)
    digest.update(np.ascontiguousarray(values).data)
    return np.frombuffer(digest.digest(), "uint8"), *summary(drawn(values))[1:]


def shown(path):
    """Returns the pixels of a file, uint8 `(height, width, 3)`."""
    return drawn(_bands_of(path)) if deep_files.is_named(path) else images.read_pixels(path, 3)


def _bands_of(path):
    return bands.read(path, bands.Reading(pages="bands", no_data=bands.ANY))


def drawn(values):
    """Returns a picture of bands: the first three, or the first, each from its smallest to its largest number."""
    values = values[..., :3] if values.shape[2] >= 3 else np.repeat(values[..., :1], 3, -1)
    values = np.nan_to_num(values)
    low, high = values.min((0, 1)), values.max((0, 1))
    return ((values - low) * (255 / np.maximum(high - low, 1e-12))).round().astype("uint8")


def _result(read, path=""):
    """Returns a tuple of `FIELDS`, or why a picture cannot be read."""
    try:
        return read()
    except Exception as error:  # any error of the decoder is a fault of this picture
        return str(error).removeprefix(f"{str(path)!r} ").removesuffix(".")
