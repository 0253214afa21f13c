"""COCO's panoptic format: a JSON file, and a PNG for each image whose colors are the numbers of its segments."""

import collections
import hashlib
from typing import NamedTuple

import numpy as np

from keras_vit.data import inspection
from keras_vit.data.augment.masks import Mask
from keras_vit.data.mask_frames import seen_map
from keras_vit.data.parallel import each
from keras_vit.data.readers import coco_files
from keras_vit.data.readers.coco_masks import report
from keras_vit.data.readers.paired_files import more
from keras_vit.models.outputs import ignored
from keras_vit.utils import images
from keras_vit.utils.folders import shown
from keras_vit.utils.instance_maps import NONE, numbers_of, object_values

FILE, FOLDER = "panoptic.json", "panoptic"
VOID = 0  # the number of pixels without a segment
MOST = 2**24 - 1  # the largest number that a color can be


class Row(NamedTuple):
    """The annotation of one image."""

    file: str  # of its PNG
    segments: list[tuple[int, str, bool]]  # number, name of the class, whether it is a crowd


def read(folder, skip=False):
    """Reads the segments of each image of a folder.

    Args:
        folder: Contains `panoptic.json`, the folder `panoptic` of PNGs, and the images, directly or in `images`.
        skip: Whether segments without a pixel are left out with a warning, instead of an error.

    Returns:
        Pairs of an image and its PNG, paths; the `masks.Mask` of each, whose `rewritten` is the PNG of a map of
        objects; the names of the classes, in the order of their ids; and the names of those that are regions.

    Raises:
        ValueError: If the file is none of COCO, if images, PNGs and it do not belong together, or for such segments.
    """
    file = folder / FILE
    categories, found = coco_files.read(file, _row)
    things = _things(categories, file)
    names, stuff = tuple(things), tuple(name for name in things if not things[name])
    paths = coco_files.images_of(folder, file, found, folder / FOLDER)
    rows = [rows for rows, _ in found.values()]
    _check_one(file, paths, rows)
    files = [folder / FOLDER / row[0].file if row else None for row in rows]
    missing = [str(path) for path in files if path and (".." in path.parts or not path.is_file())]
    if missing:
        raise ValueError(f"{str(file)!r} must name PNGs that exist. Received: {missing[0]!r}{more(missing)}")
    indices = {name: (index, not things[name]) for index, name in enumerate(names)}
    items = zip(rows, files, paths, inspection.inspect_all(paths))
    checked = each(lambda item: _mask(*item, indices), items, "drawing masks")
    report([fault for _, faults in checked for fault in faults], skip)
    pairs = [(path, str(png or file)) for path, png in zip(paths, files)]
    return pairs, [mask for mask, _ in checked], names, stuff


def _row(entry, names):
    """Returns the `Row` of an annotation."""
    segments = [
        (one["id"], names[one["category_id"]], coco_files.is_crowd(one, "segment")) for one in entry["segments_info"]
    ]
    numbers = [number for number, *_ in segments]
    wrong = next((n for n in numbers if type(n) is not int or not VOID < n <= MOST or numbers.count(n) > 1), None)
    if wrong is not None:
        raise ValueError(f"ids of segments must be different whole numbers from 1 to {MOST}: {wrong!r}")
    if not isinstance(entry["file_name"], str):
        raise ValueError(f"names of files must be texts: {entry['file_name']!r}")
    return Row(entry["file_name"], segments)


def _things(categories, file):
    """Returns whether each class is of things, a dictionary by name."""
    things = {}
    for entry in categories.values():
        is_thing = entry.get("isthing")
        if is_thing not in (0, 1):
            raise ValueError(f"{str(file)!r} must say isthing, 0 or 1, of {entry['name']!r}. Received: {is_thing!r}")
        if things.setdefault(entry["name"], bool(is_thing)) != is_thing:
            raise ValueError(f"{str(file)!r} must name each category once. Received: {entry['name']!r}, of both kinds")
    return things


def _check_one(file, paths, rows):
    """Raises ValueError if an image has several annotations, or a PNG several images."""
    twice = next((path for path, found in zip(paths, rows) if len(found) > 1), None)
    if twice:
        raise ValueError(f"{str(file)!r} must have one annotation of each image. Received: several of {twice!r}")
    names = [row.file for found in rows for row in found]
    if len(set(names)) < len(names):
        twice = next(name for name, count in collections.Counter(names).items() if count > 1)
        raise ValueError(f"{str(file)!r} must name a PNG of each image. Received: {twice!r} of several")


def _mask(rows, file, path, image, indices):
    """Returns the `masks.Mask` of an image and the faults of its segments; see `read`."""
    if image.fault or not rows:
        return Mask(image.fault or f"{FILE} has no annotation of it"), []
    segments = sorted(rows[0].segments)
    try:
        numbers, digest = _numbers(file)
    except Exception as error:  # any error of the decoder is a fault of this file
        return Mask(str(error).removeprefix(f"{str(file)!r} ").removesuffix(".")), []
    try:
        values, faults = _values(numbers, segments, indices)
    except ValueError as error:
        return Mask(str(error)), []
    digest = hashlib.blake2b(digest + repr(segments).encode(), digest_size=inspection.DIGEST).digest()
    return seen_map(values, digest, image), [f"{shown(path)}, {fault}" for fault in faults]


def _numbers(file):
    """Returns the numbers in a PNG, `(height, width)`, and a hash of its bytes."""
    data = images.encoded(file)
    with images.in_turn(data), images.opened(data) as image:
        if image.format != "PNG" or image.mode != "RGB":
            raise ValueError(
                "a PNG of segments must be of red, green and blue, 8 bits each. "
                f"Received: {image.format} of mode {image.mode!r}"
            )
        numbers = numbers_of(image)
    return images.turned(numbers, images.orientation(data)), inspection.digest_of(data).tobytes()


def _values(numbers, segments, indices):
    """Returns the map of the numbers of segments, and the faults of segments without a pixel."""
    known = np.array([VOID, *(number for number, *_ in segments)], "int32")
    places = np.searchsorted(known, numbers).clip(max=len(known) - 1)
    if (wrong := numbers[known[places] != numbers]).size:
        raise ValueError(f"its PNG has the number {wrong[0]}, which segments_info has not")
    counts = np.bincount(places.reshape(-1), minlength=len(known))[1:]
    seen = np.flatnonzero(counts)
    classes = [indices[name][0] for _, name, _ in segments]
    stuff = [index for index, is_stuff in indices.values() if is_stuff]
    crowds = [ignored(index) if crowd else index for index, (*_, crowd) in zip(classes, segments)]
    table = np.full(len(known), NONE, "int32")
    table[1 + seen] = object_values(np.array(crowds, "int64")[seen], np.array(stuff, "int64"))
    faults = [f"{segments[i][1]}: no pixel has its id, {segments[i][0]}" for i in np.flatnonzero(counts == 0)]
    return table[places], faults
