"""Objects in a JSON file of COCO as maps: polygons, and run lengths of pixels (RLE), as text or as numbers.

They are drawn by pycocotools, so that masks are those of COCO's own evaluation.
"""

import hashlib
from typing import NamedTuple

import numpy as np

from keras_vit.data import inspection
from keras_vit.data.augment.masks import Mask
from keras_vit.data.mask_frames import UNDECIDED, is_stored, seen_map
from keras_vit.data.parallel import each
from keras_vit.data.readers import coco_files
from keras_vit.models.outputs import ignored
from keras_vit.utils import extras
from keras_vit.utils.folders import shown
from keras_vit.utils.instance_maps import NONE, object_values, order
from keras_vit.utils.warned import left_out, named

FAR = 1  # by how many of the image's sides a point may be outside of it


class Row(NamedTuple):
    """What is kept of an annotation."""

    number: int  # its id
    name: str  # of its class
    crowd: bool
    segmentation: list | dict | None


def read(folder, file, skip=False):
    """Reads the objects of each image of a folder.

    Args:
        folder: Contains the images, directly or in `images`.
        file: The JSON file.
        skip: Whether objects that cannot be drawn are left out with a warning, instead of an error.

    Returns:
        The paths of the images; the `masks.Mask` of each, whose `rewritten` is the PNG of a map of objects; and the
        names of the classes, in the order of their ids.

    Raises:
        ImportError: If pycocotools is not installed.
        ValueError: If the file is none of COCO, images and it do not belong together, or for such objects.
    """
    extras.need("Drawing the masks of COCO", "detection", "pycocotools")
    categories, images = coco_files.read(file, _row, _compact)
    names = tuple(dict.fromkeys(entry["name"] for entry in categories.values()))
    paths = coco_files.images_of(folder, file, images)
    indices = {name: index for index, name in enumerate(names)}
    items = zip(images.values(), paths, inspection.inspect_all(paths))
    found = each(lambda item: _mask(*item, indices), items, "drawing masks")
    report([fault for _, faults in found for fault in faults], skip)
    return paths, [mask for mask, _ in found], names


def report(faults, skip):
    """Warns of objects that are left out; raises ValueError unless `skip`."""
    if faults and not skip:
        raise ValueError(
            f"{len(faults)} objects are wrong. Repair them, or leave them out with data.bad_images=skip:\n  "
            f"{named(faults)}"
        )
    if faults:
        left_out(f"{len(faults)} objects, which are wrong", faults)


def _compact(entry):
    """Keeps the polygons of an object of the JSON as arrays, in a quarter of the memory of lists."""
    if isinstance(parts := entry.get("segmentation"), list):
        entry["segmentation"] = list(map(_array, parts))
    elif isinstance(parts := entry.get("counts"), list):
        entry["counts"] = _array(parts)
    return entry


def _array(part):
    try:
        array = np.array(part)
    except ValueError:  # lists of different lengths
        return part
    return array.astype("float64") if array.dtype.kind in "iuf" else part


def _row(entry, names):
    return Row(entry.get("id"), names[entry["category_id"]], coco_files.is_crowd(entry), entry.get("segmentation"))


def _mask(entry, path, image, indices):
    """Returns the `masks.Mask` of an image and the faults of its objects; see `read`."""
    rows, stated = entry
    stored = is_stored(stated, image)
    size = image.size[::-1] if stored else image.size
    fault = image.fault
    if fault is None and stated not in (None, size):
        fault = f"it is of {stated[0]} x {stated[1]} pixels, and the image has {size[0]} x {size[1]}"
    if fault is None and stored is None and rows:
        fault = UNDECIDED.format(image.orientation, "it belongs")
    if fault:
        return Mask(fault), []
    kept, runs, faults = [], [], []
    for row in rows:
        try:
            runs.append(rle(row.segmentation, size[::-1]))
            kept.append(row)
        except ValueError as error:
            faults.append(f"{shown(path)}, {row.name}, annotation {row.number}: {error}")
    classes = [ignored(indices[row.name]) if row.crowd else indices[row.name] for row in kept]
    try:
        values = object_values(classes)
    except ValueError as error:
        return Mask(str(error)), faults
    read_of = [(row.name, row.crowd, run["counts"]) for row, run in zip(kept, runs)]
    digest = hashlib.blake2b(repr(read_of).encode(), digest_size=inspection.DIGEST).digest()
    return seen_map(drawn(runs, values, size[::-1]), digest, image), faults


def rle(segmentation, size):
    """Returns a segmentation as pycocotools' RLE.

    Args:
        segmentation: A list of polygons, `x, y, x, y, ...` each; or a dictionary of `"size"`, height and width, and
            `"counts"`, a list or a text.
        size: `(height, width)` of the image.

    Raises:
        ValueError: With what is wrong with it, as words; also if no pixel is inside.
    """
    from pycocotools import mask

    if isinstance(segmentation, dict):
        counts, stated = segmentation.get("counts"), segmentation.get("size")
        if not isinstance(stated, list) or stated != list(size):
            raise ValueError(f"its RLE must have the size [height, width] of the image, {list(size)}: {stated!r:.60}")
        runs = _runs(counts)
        if runs is None or not len(runs) or (runs < 0).any() or (runs % 1).any() or runs.sum() != size[0] * size[1]:
            raise ValueError(f"its RLE must count all {size[0] * size[1]} pixels of the image")
        found = mask.frPyObjects({"size": list(size), "counts": runs.astype("int64").tolist()}, *size)
    else:
        found = mask.merge(mask.frPyObjects(_polygons(segmentation, size), *size))
    if not mask.area(found):
        raise ValueError("it has no area: no pixel of the image is inside")
    return found


def _polygons(parts, size):
    if not isinstance(parts, list) or not parts:
        raise ValueError("it has no segmentation")
    sides = np.array([size[1], size[0]])
    for part in parts:
        points = np.asarray(part) if isinstance(part, (list, np.ndarray)) and np.ndim(part) == 1 else np.zeros(0)
        if points.dtype.kind not in "iuf" or len(points) < 6 or len(points) % 2:
            raise ValueError(f"a polygon must be x, y, x, y, ... of three points or more: {np.size(part)} numbers")
        pairs = points.reshape(-1, 2)
        if not ((pairs >= -FAR * sides) & (pairs <= (1 + FAR) * sides)).all():  # nan too
            raise ValueError(f"a point of its polygon is far outside the image of {size[1]} x {size[0]} pixels")
    return parts


def _runs(counts):
    """Returns the counts of an RLE as numbers; `None` if they are none.

    A text has five bits of a number in each character, the lowest first, and another bit while more follow. From the
    fourth on, a number is the difference from the one before the last.
    """
    if isinstance(counts, np.ndarray):
        return counts if counts.ndim == 1 and counts.dtype.kind in "iuf" else None
    if not isinstance(counts, str) or not counts or not counts.isascii():
        return None
    codes = np.frombuffer(counts.encode(), "uint8").astype("int64") - 48
    if codes.min() < 0 or codes.max() > 63 or codes[-1] & 32:
        return None
    ends = np.flatnonzero((codes & 32) == 0)
    starts = np.append(0, ends[:-1] + 1)
    places = np.arange(len(codes)) - np.repeat(starts, ends - starts + 1)
    if places.max() > 6:  # more than 35 bits
        return None
    numbers = np.add.reduceat((codes & 31) << (5 * places), starts)
    numbers -= ((codes[ends] & 16) > 0).astype("int64") << (5 * (places[ends] + 1))
    numbers[1::2], numbers[2::2] = np.cumsum(numbers[1::2]), np.cumsum(numbers[2::2])
    return numbers


def drawn(runs, values, size):
    """Returns a map of objects, int32 `size`: smaller ones are on top, then later ones.

    Args:
        runs: Their masks, pycocotools' RLE.
        values: Their values.
        size: `(height, width)`.
    """
    from pycocotools import mask

    found = np.full(size, NONE, "int32")
    for i in order([mask.area(one) for one in runs]):
        left, top, width, height = mask.toBbox(runs[i]).astype(int)
        part = np.s_[top : top + height, left : left + width]
        found[part][mask.decode(runs[i])[part] > 0] = values[i]
    return found
