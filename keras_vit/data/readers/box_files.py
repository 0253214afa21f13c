"""Files of boxes: Pascal VOC's XML, one for each image, and COCO's JSON, one for all."""

import hashlib
import json
import math
import pathlib
import posixpath
from typing import NamedTuple
from xml.etree import ElementTree

from keras_vit.data.inspection import DIGEST
from keras_vit.utils import files
from keras_vit.utils.names import composed

VOC = ("ymin", "xmin", "ymax", "xmax")
MOST_BYTES = 2**31  # of COCO's JSON: that of LVIS has 1.1 GB
UNREADABLE = (OSError, ElementTree.ParseError, ValueError, TypeError, LookupError, OverflowError)


class Objects(NamedTuple):
    """The objects in one image."""

    fault: str | None  # why they cannot be read
    names: tuple[str, ...] = ()  # the class of each
    edges: tuple[tuple[float, ...], ...] = ()  # top, left, bottom, right of each, in pixels
    size: tuple[int, int] | None = None  # width, height of the image, if the file says it
    digest: bytes = b""  # hash of what was read
    ignored: tuple[bool, ...] = ()  # whether it is no object to find: a crowd, or difficult


def voc(path):
    """Reads an XML file of Pascal VOC; edges are taken as they are written. `difficult` objects are to be ignored.

    Args:
        path: The file.

    Returns:
        `Objects`.
    """
    path = pathlib.Path(path)
    try:
        data = files.read(path)
        root = ElementTree.fromstring(data)
        if root.tag != "annotation":
            raise ValueError(f"it begins with <{root.tag}>, not with <annotation>")
        objects = [
            (
                composed((entry.findtext("name") or "").strip()),
                [float(entry.findtext(f"bndbox/{e}")) for e in VOC],
                bool(int(entry.findtext("difficult") or 0)),
            )
            for entry in root.iter("object")
        ]
        size = tuple(int(float(root.findtext(f"size/{side}") or 0)) for side in ("width", "height"))
    except FileNotFoundError:
        where = f"{path.parent.name}/{path.name}"
        return Objects(f"there is no {where}: if the image has no objects, write <annotation></annotation> into it")
    except UNREADABLE as error:
        return Objects(f"no XML of Pascal VOC: {getattr(error, 'strerror', None) or error}")
    return _objects(objects, size if all(size) else None, data)


def coco(path):
    """Reads a JSON file of COCO. Crowds (`iscrowd`) are to be ignored.

    Args:
        path: The file.

    Returns:
        The names of the classes by their ids, and a dictionary from each image's `file_name` to its `Objects`.

    Raises:
        ValueError: If it is no such file.
    """
    try:
        content = _parsed(files.read(path, MOST_BYTES))
        categories, images = (_by_id(content[kind], kind) for kind in ("categories", "images"))
        names = {key: _composed(categories[key]["name"]) for key in sorted(categories)}
        objects = {key: [] for key in images}
        for entry in content["annotations"]:
            if entry.get("iscrowd", 0) not in (0, 1):
                raise ValueError(f"iscrowd of annotation {entry.get('id')} must be 0 or 1: {entry['iscrowd']!r}")
            if entry.get("iscrowd") and not entry.get("bbox"):
                continue
            if len(entry["bbox"]) != 4:
                raise ValueError(f"annotation {entry.get('id')} has no box of four numbers")
            left, top, width, height = map(float, entry["bbox"])
            edges = (top, left, top + height, left + width)
            objects[entry["image_id"]].append((names[entry["category_id"]], edges, bool(entry.get("iscrowd"))))
        if not all(isinstance(name, str) for name in [*names.values(), *(one["file_name"] for one in images.values())]):
            raise ValueError("names of categories and files must be texts")
        named = {
            posixpath.normpath(entry["file_name"]): _objects(
                objects[key],
                _size(entry),
                repr(objects[key]).encode(),
            )
            for key, entry in images.items()
        }
    except KeyError as error:
        raise ValueError(f"{str(path)!r} is no JSON of COCO: it has no {error.args[0]!r} where one must be.") from None
    except (*UNREADABLE, AttributeError) as error:
        raise ValueError(f"{str(path)!r} is no JSON of COCO: {getattr(error, 'strerror', None) or error}.") from None
    if len(named) < len(images):
        raise ValueError(f"{str(path)!r} must name each image once. Received: {len(images)} images, {len(named)} names")
    return names, named


def _composed(name):
    return composed(name) if isinstance(name, str) else name


def _parsed(data):
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("its brackets are too deep") from None


def _size(image):
    """Returns the `(width, height)` that a JSON file of COCO says of an image, or `None`."""
    sides = tuple(image.get(side) for side in ("width", "height"))
    if not all(sides):
        return None
    if not all(type(side) in (int, float) and side > 0 for side in sides):
        raise ValueError(f"width and height of {image['file_name']!r} must be positive numbers: {sides}")
    return sides


def _by_id(entries, kind):
    """Returns entries of a JSON file by their ids, each with one of its own."""
    by_id = {}
    for entry in entries:
        if by_id.setdefault(entry["id"], entry) != entry:
            raise ValueError(
                f"two of its {kind} have the id {entry['id']}, as of two files put together. Give each an id of its own"
            )
    return by_id


def fault_of(edges, size):
    """Returns what is wrong with the edges of an object in an image of `(width, height)`, or `None`."""
    top, left, bottom, right = edges
    if not all(map(math.isfinite, edges)):
        return f"its edges are no numbers: {_shown(edges)}"
    if top >= bottom or left >= right:
        return flat(edges)
    if bottom <= 0 or right <= 0 or top >= size[1] or left >= size[0]:
        return f"it is outside the image of {size[0]} x {size[1]}: {_shown(edges)}"
    return None


def flat(edges):
    """Returns what is wrong with edges without area, as words."""
    return f"it has no area, or its edges are in another order: {_shown(edges)}"


def _shown(edges):
    return ", ".join(f"{name} {edge:g}" for name, edge in zip(("top", "left", "bottom", "right"), edges))


def _objects(rows, size, data):
    names, edges, ignored = zip(*rows) if rows else ((), (), ())
    if not all(names):
        return Objects("an object has no name")
    digest = hashlib.blake2b(data, digest_size=DIGEST).digest()
    return Objects(None, tuple(names), tuple(map(tuple, edges)), size, digest, tuple(ignored))
