"""What is kept of each picture: a hash of its pixels, which finds equal ones, and a thumbnail, which finds others.

Files that did not change since are not read again, also after an interruption: `data.known_files` remembers them.
"""

import functools
import hashlib
from typing import NamedTuple

import numpy as np

from keras_vit.inspecting import crops
from keras_vit.utils import images

RULES = 1  # raise it when a picture may get another hash or thumbnail
DIGEST = 16  # bytes of a hash
SIDE = 8  # pixels of a thumbnail's side
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
    from PIL import Image

    digest = hashlib.blake2b(str(pixels.shape).encode(), digest_size=DIGEST)
    digest.update(np.ascontiguousarray(pixels).data)
    image, mean = Image.fromarray(pixels), Image.Resampling.BOX  # of each part
    gray = image.resize((crops.SIDE, crops.SIDE), mean).convert("L")
    return np.frombuffer(digest.digest(), "uint8"), np.asarray(image.resize((SIDE, SIDE), mean)), np.asarray(gray)


@functools.cache
def _known():
    from keras_vit.data.known_files import KnownFiles

    return KnownFiles(f"pictures {RULES}", FIELDS, _read)


def _read(paths):
    return [_result(lambda path=path: images.read_pixels(path, 3, summary), path) for path in paths]


def _result(read, path=""):
    """Returns a tuple of `FIELDS`, or why a picture cannot be read."""
    try:
        return read()
    except Exception as error:  # any error of the decoder is a fault of this picture
        return str(error).removeprefix(f"{str(path)!r} ").removesuffix(".")
