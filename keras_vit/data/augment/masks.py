"""Files of segmentation masks: PNGs of class indices, one for each pixel.

TensorFlow decodes a palette to colors, and stretches fewer than eight bits. Such files are written again as plain gray
PNGs when they are inspected, so that every mask behind this module is decoded alike.
"""

import functools
import io
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_vit.data.inspection import DIGEST, digest_of, digest_of_file
from keras_vit.data.known_files import KnownFiles
from keras_vit.data.parallel import each
from keras_vit.data.readers.decoding import error_reason
from keras_vit.utils import deep_files, images
from keras_vit.utils.instance_maps import NONE, PER_CLASS

RASTERS = (".tif", ".tiff", ".npy")  # endings of masks that are read by windows
RULES = 1  # raise it when a file of the same bytes may be judged otherwise, or a field means something else
FIELDS = (("digest", "u1", (DIGEST,)), ("shape", "u4", (2,)), ("counts", "u4", (256,)))


class Mask(NamedTuple):
    """The result of inspecting a mask file."""

    fault: str | None  # why it cannot be used
    wrong_kind: bool = False  # whether it can be read, but is no mask of class indices
    digest: bytes = b""  # hash of its bytes
    size: tuple[int, int] = (0, 0)  # width, height
    counts: np.ndarray | None = None  # pixels of each value, (256,)
    rewritten: bytes | None = None  # a gray PNG of its indices, unless the file is one
    what = "its mask"


def decode(item):
    """Returns uint8 `(height, width, 1)` from a gray PNG, a scalar string; or pixels, as they are."""
    if item.dtype != tf.string:
        return item
    mask = tf.io.decode_png(item, channels=1)
    mask.set_shape((None, None, 1))
    return mask


def regions(indices, count):
    """Returns class indices as maps of objects, int32: each of `count` classes that is present is one region."""
    indices = tf.cast(indices, "int32")
    return tf.where(indices < count, PER_CLASS * indices, NONE)


def counts(values):
    """Returns how many pixels have each value 0 to 255."""
    flat = np.asarray(values, "uint8").reshape(-1)
    parts = (np.bincount(flat[some], minlength=256) for some in images.strips(len(flat), 1))
    return sum(parts, np.zeros(256, "int64")).astype("uint32")


def inspect_all(paths):
    """Decodes mask files, unless that was done before and they are the same; returns the `Mask` of each, in order."""
    records, others = _known().look_up(list(map(str, paths)), "checking masks")
    inspected = [others.get(place) or _mask(record) for place, record in enumerate(records)]
    return [Mask(mask) if isinstance(mask, str) else mask for mask in inspected]


def counts_of(items):
    """Returns the pixels of each value, `(items, 256)`, of masks of any kind: paths, PNG bytes or uint8 arrays."""
    if len(items) and isinstance(items[0], str):
        counts_of_masks = [mask.counts for mask in inspect_all(items)]
    else:
        counts_of_masks = each(lambda item: counts(images.mask_pixels(item)), items)
    return np.array(counts_of_masks, "uint32").reshape(-1, 256)


def named_values(counted, paths=None):
    """Returns a dictionary from each value that occurs to the name of the first mask that has it.

    Args:
        counted: Result of `counts_of`.
        paths: Of the masks; without, they are named by their numbers.
    """
    values = np.flatnonzero(counted.any(axis=0)).tolist()
    first = {value: int(np.argmax(counted[:, value] > 0)) for value in values}
    return {value: f"mask {i}" if paths is None else str(paths[i]) for value, i in first.items()}


@functools.cache
def _known():
    return KnownFiles(f"masks {RULES}", FIELDS, lambda paths: list(map(_inspect, paths)))


def _mask(record):
    digest, size, counted = (record[name] for name, *_ in FIELDS)
    return Mask(None, False, digest.tobytes(), tuple(size.tolist()), counted)


def is_raster(path):
    """Returns whether a path is that of a mask that is read by windows: a TIFF or an array."""
    return str(path).lower().endswith(RASTERS)


def values_of(path):
    """Returns the values of a mask file without faults, which was not rewritten: uint8 `(height, width)`."""
    if is_raster(path):
        return deep_files.opened(path, labels=True).whole()[..., 0].astype("uint8")
    return images.mask_pixels(images.encoded(path))


def _inspect_raster(path):
    """Returns a tuple of `FIELDS` for a mask that is read by windows, or a `Mask` with what is wrong with it."""
    try:
        raster = deep_files.opened(path, labels=True)
        height, width, bands = raster.shape
        if bands != 1 or raster.dtype.kind not in "ui":
            return Mask(f"{bands} bands of {raster.dtype}", wrong_kind=True)
        counted = np.zeros(256, "uint32")
        step = max(images.STRIP // width // raster.block[0], 1) * raster.block[0]
        for top in range(0, height, step):
            values = raster.read(top, 0, min(step, height - top), width)
            if values.min() < 0 or values.max() > 255:
                return Mask(f"values from {values.min()} to {values.max()}", wrong_kind=True)
            counted += counts(values)
        return digest_of_file(path), (width, height), counted
    except (ValueError, OSError) as error:
        return Mask(str(error).removeprefix(f"{path!r} ").removesuffix("."))


def _inspect(path):
    """Returns a tuple of `FIELDS` for a plain mask file, and a `Mask` for any other, which is read each time."""
    if is_raster(path):
        return _inspect_raster(path)
    try:
        data = images.encoded(path)
        with images.in_turn(data), images.opened(data) as image:
            if image.format != "PNG" or image.mode not in ("1", "L", "P"):
                return Mask(f"{image.format} of mode {image.mode!r}", wrong_kind=True)
            bits, orientation = data[24], images.orientation(data)  # bits: in a PNG's header
            plain = image.mode == "L" and bits == 8 and orientation == 1
            # A plain file is decoded as in training: Pillow reads one that lacks its last bytes.
            values = decode(tf.constant(data)).numpy()[..., 0] if plain else np.array(image, "uint8")
            if image.mode == "L" and not plain:
                values //= 255 // (2**bits - 1)  # Pillow stretches them as TensorFlow does
            values = images.turned(values, orientation)
    except tf.errors.OpError as error:
        return Mask(error_reason(error))
    except Exception as error:  # any error of the decoder is a fault of this file
        return Mask(str(error).removeprefix(f"{path!r} ").removesuffix("."))
    digest, size = digest_of(data), values.shape[::-1]
    if plain:
        return digest, size, counts(values)
    return Mask(None, False, digest.tobytes(), size, counts(values), gray_png(values))


def gray_png(values):
    """Returns a PNG of a mask's values, `(height, width)`."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return file.getvalue()
