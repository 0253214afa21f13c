"""Maps of objects: one integer for each pixel says its class, and which object of this class it belongs to.

Pixels of an object are `class * 1000 + number`, where `number` tells the objects of one class apart, 1 to 999; those of
a region such as sky, of which an image has one for each class, have number 0. This is the convention of Cityscapes
(Cordts et al. 2016, arXiv:1604.01685). -1 is no object, or unknown; -2 - class a region where this class is ignored.
As a file, a map is a PNG of red, green and blue: value + 1024 = red + 256 green + 65536 blue.
"""

import struct
import zlib

import numpy as np

from keras_vit.utils.images import opened, strips

PER_CLASS = 1000
NONE = -1
OFFSET = 1024
CLASSES = (2**24 - OFFSET) // PER_CLASS  # most classes of objects that a PNG of three bytes can hold
IGNORED = OFFSET - 1  # most classes of regions to ignore, -2 - class
SIGNATURE = b"\x89PNG\r\n\x1a\n"  # the first bytes of a PNG


def instance_map(masks, classes, stuff=()):
    """Joins the masks of an image's objects to one map, the target `"instance_masks"`.

    Where masks overlap, the smaller one is on top, then the later one. A mask without pixels is left out.

    Args:
        masks: Array of booleans, or of 0 and 1, `(objects, height, width)`.
        classes: Integers `(objects,)`: the index of each object's class; or `-2 - index` of a region where objects of
            this class are not told apart, such as a crowd, which training ignores.
        stuff: Indices of the classes that are regions, such as sky: their masks are one segment.

    Returns:
        int32 array, `(height, width)`: `class * 1000 + number` in the pixels of an object, where `number` counts the
        objects of its class from 1 on, and is 0 in those of `stuff`; -1 where there is none; `-2 - index` in a region
        to ignore.

    Raises:
        ValueError: For another shape or type, a class that is none, or more than 999 objects of one class.
    """
    masks, classes, stuff = _array(masks, "masks"), _array(classes, "classes"), _array(stuff, "stuff")
    if masks.ndim != 3 or masks.dtype.kind not in "bui" or (masks.size and not 0 <= masks.min() <= masks.max() <= 1):
        most = f", values from {masks.min()} to {masks.max()}" if masks.dtype.kind in "ui" and masks.size else ""
        raise ValueError(
            "`masks` must be booleans, or 0 and 1, of the shape (objects, height, width). "
            f"Received: shape={masks.shape}, dtype={masks.dtype}{most}"
        )
    values = object_values(classes, stuff)
    if len(values) != len(masks):
        raise ValueError(f"Each mask must have a class. Received: {len(masks)} masks and {len(values)} classes")
    joined_map = np.full(masks.shape[1:], NONE, "int32")
    for i in order([np.count_nonzero(mask) for mask in masks]):
        joined_map[masks[i].astype(bool)] = values[i]
    return joined_map


joined = instance_map  # inside the package


def object_values(classes, stuff=()):
    """Returns the value of each object in the map of its image, int32 `(objects,)`; arguments as in `instance_map`."""
    classes, stuff = np.asarray(classes), np.asarray(stuff)
    for name, indices, low, rule in (
        ("classes", classes, -1 - IGNORED, f"indices of classes, or -2 - index, below {IGNORED}, of what is ignored"),
        ("stuff", stuff, 0, "indices of classes"),
    ):
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "ui"):
            raise ValueError(
                f"`{name}` must be a vector of integers. Received: shape={indices.shape}, dtype={indices.dtype}"
            )
        wrong = indices[(indices < low) | (indices == NONE) | (indices >= CLASSES)] if indices.size else indices
        if len(wrong):
            raise ValueError(f"`{name}` must be {rule}; all below {CLASSES}. Received: {wrong[0]}")
    classes = classes.astype("int32")
    values = classes.copy()
    for index in np.unique(classes[classes >= 0]):
        here = classes == index
        count = np.count_nonzero(here)
        if index not in stuff and count >= PER_CLASS:
            raise ValueError(
                f"An image must have at most {PER_CLASS - 1} objects of one class. Received: {count} of class {index}"
            )
        values[here] = index * PER_CLASS + (0 if index in stuff else np.arange(1, count + 1))
    return values


def fault(values, count=None):
    """Returns what is wrong with the values of a map of objects of `count` classes, or `None`."""
    count = min(count or CLASSES, CLASSES)
    low, high = (values.min(), values.max()) if values.size else (NONE, NONE)
    if -1 - min(count, IGNORED) <= low and high < PER_CLASS * count:
        return None
    return (
        f"the values must be class * {PER_CLASS} + number, of a class from 0 to {count - 1}, or {NONE}, or -2 - class. "
        f"Received: {low} to {high}"
    )


def order(areas):
    """Returns the order in which masks of these areas are drawn: smaller ones on top, then later ones."""
    return np.argsort(-np.asarray(areas, "float64"), kind="stable")


def png(values):
    """Returns the bytes of the PNG of a map, integers `(height, width)` or `(height, width, 1)`.

    Each row is written as what differs from the one above: maps are flat, and Pillow, which tries every filter on every
    row, takes twice as long to write and three times as long to read.
    """
    values = _plane(values)
    height, width = values.shape
    compressor, data, above = zlib.compressobj(), [], np.zeros((1, 3 * width), "uint8")
    for part in strips(height, 4 * width):
        numbers = np.ascontiguousarray(values[part].astype("int32") + OFFSET, "<u4")
        bands = numbers.view("uint8").reshape(-1, width, 4)[..., :3].reshape(-1, 3 * width)
        rows = np.full((len(bands), 1 + 3 * width), 2, "uint8")  # the filter "up", then the row
        rows[:, 1:] = bands - np.concatenate([above, bands[:-1]])
        data.append(compressor.compress(rows))
        above = bands[-1:]
    data = b"".join([*data, compressor.flush()])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits each of red, green and blue
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pixels(item):
    """Returns the values of a map, int32 `(height, width)`.

    Args:
        item: The bytes of a PNG that `png` wrote; or an array of integers, `(height, width)` or `(height, width, 1)`.

    Raises:
        ValueError: For another file, or an array of another shape, type or range.
    """
    if not isinstance(item, bytes):
        return _plane(item).astype("int32")
    with opened(item) as image:
        if image.format != "PNG" or image.mode != "RGB":
            raise ValueError(
                "A map of objects must be a PNG of red, green and blue, 8 bits each. "
                f"Received: {image.format} of mode {image.mode!r}"
            )
        return numbers_of(image) - OFFSET


def numbers_of(image):
    """Returns red + 256 green + 65536 blue of a Pillow image of mode RGB, int32 `(height, width)`."""
    bands, numbers = np.asarray(image), np.empty(image.size[::-1], "int32")
    for rows in strips(image.height, 3 * image.width):
        numbers[rows] = bands[rows].astype("int32") @ np.array([1, 2**8, 2**16], "int32")
    return numbers


def _plane(values):
    values = _array(values, "values")
    plane = values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values
    if plane.ndim != 2 or plane.dtype.kind not in "ui":
        raise ValueError(
            "A map of objects must be integers of the shape (height, width) or (height, width, 1). "
            f"Received: shape={values.shape}, dtype={values.dtype}"
        )
    if plane.size and not -OFFSET <= plane.min() <= plane.max() < 2**24 - OFFSET:
        raise ValueError(
            f"A map of objects must have values from {-OFFSET} to {2**24 - OFFSET - 1}. "
            f"Received: {plane.min()} to {plane.max()}"
        )
    return plane


def _array(values, name):
    """Returns an array; raises ValueError for lists whose items have different shapes."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"`{name}` must be one array. Received: items of different shapes") from None
