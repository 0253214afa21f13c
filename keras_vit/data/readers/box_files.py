"""Files of boxes: Pascal VOC's XML, one for each image, and COCO's JSON, one for all."""

import hashlib
import math
import pathlib
from typing import NamedTuple
from xml.etree import ElementTree

from keras_vit.data.inspection import DIGEST
from keras_vit.data.readers import coco_files
from keras_vit.utils import files
from keras_vit.utils.names import composed

VOC = ("ymin", "xmin", "ymax", "xmax")
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
    categories, images = coco_files.read(path, _coco_row)
    names = {key: entry["name"] for key, entry in categories.items()}
    return names, {name: _objects(rows, size, repr(rows).encode()) for name, (rows, size) in images.items()}


def _coco_row(entry, names):
    """Returns the class, the edges and whether it is a crowd of an annotation; `None` of a crowd without a box."""
    crowd = coco_files.is_crowd(entry)
    if crowd and not entry.get("bbox"):
        return None
    if len(entry["bbox"]) != 4:
        raise ValueError(f"annotation {entry.get('id')} has no box of four numbers")
    left, top, width, height = map(float, entry["bbox"])
    return names[entry["category_id"]], (top, left, top + height, left + width), crowd


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
