"""Files of labels in YOLO's format: one row for each object, a box or a polygon, in shares of the image.

A row is `class x y width height`, of a box's center; or `class x1 y1 x2 y2 ...` of three points or more. A box of four
points, as of objects that are turned, is a polygon.
"""

import hashlib
from typing import NamedTuple

import numpy as np

from keras_vit.data import inspection
from keras_vit.data.augment.masks import Mask, gray_png
from keras_vit.data.parallel import each
from keras_vit.data.readers.box_arrays import has_area
from keras_vit.utils import files
from keras_vit.utils.instance_maps import NONE, object_values, order, png
from keras_vit.utils.warned import left_out, named

ROUNDING = 0.01  # beyond the image, which is cut off: ultralytics accepts as much
BOX = 4  # numbers of a box after its class
BACKGROUND = "background"  # the class of pixels without an object, before all others
MOST = 253  # classes beside the background: Segment leaves 255 to void


class Labels(NamedTuple):
    """The rows of one file."""

    fault: str | None  # why they cannot be used
    rows: tuple | np.ndarray = ()  # pairs of a class and the numbers after it, each once; or boxes, as in `boxes`
    repeated: int = 0  # rows that were there before
    flat: tuple[str, ...] = ()  # rows without area, which are left out
    digest: bytes = b""  # hash of what was read


def read(path, count):
    """Reads a file of labels.

    Args:
        path: The file; `None` for an image without one, which has no objects.
        count: Number of classes.

    Returns:
        `Labels`; the fault names the row.
    """
    try:
        data = b"" if path is None else files.read(path)
        lines = data.decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        return Labels(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
    rows, flat = [], []
    for number, line in enumerate(lines, 1):
        if not (words := line.split()):
            continue
        shown = f"Received: {line.strip()!r:.60}"
        try:
            row = _row(words, count)
        except ValueError as error:
            return Labels(f"{path}, line {number}: {error}. {shown}")
        if _has_area(row[1]):
            rows.append(row)
        else:
            flat.append(f"{path}, line {number}. {shown}")
    once = tuple(dict.fromkeys(rows))
    digest = hashlib.blake2b(data, digest_size=inspection.DIGEST).digest()
    return Labels(None, once, len(rows) - len(once), tuple(flat), digest)


def boxes(paths, count, skip=False):
    """Returns the `Labels` of each file, whose rows are boxes, those around polygons too: float32 `(objects, 5)`.

    Args:
        paths: As `read` takes them.
        count: Number of classes.
        skip: Whether rows without area are left out with a warning, instead of an error.

    Raises:
        ValueError: For such a row.
    """
    found = each(lambda path: _boxes(read(path, count)), paths, "reading labels")
    _report(found, skip)
    return found


def masks(paths, images, names, skip=False):
    """Returns a `masks.Mask` of each file: 0 for the background, and class i as i + 1; smaller objects are on top.

    Args:
        paths: As `read` takes them.
        images: Path of the image of each.
        names: Of the classes.
        skip: As in `boxes`.

    Raises:
        ValueError: As `boxes`, and if masks cannot have these classes.
    """
    if len(names) > MOST or BACKGROUND in names:
        raise ValueError(
            f"Masks must be of {MOST} classes or fewer beside {BACKGROUND!r}, which is the first of their classes. "
            f"Received: names={names!r:.100}"
        )
    items = zip(paths, inspection.inspect_all(images))
    found = each(lambda item: _mask(read(item[0], len(names)), *item, _classes), items, "drawing masks")
    _report([labels for labels, _ in found], skip)
    return [mask for _, mask in found]


def instances(paths, images, names, skip=False):
    """Returns a `masks.Mask` of each file, whose `rewritten` is the PNG of a map of its objects.

    Args:
        paths, images, names, skip: As in `masks`.

    Raises:
        ValueError: As `boxes`; also for a polygon that no pixel's center is inside.
    """
    items = zip(paths, inspection.inspect_all(images))
    found = each(lambda item: _mask(read(item[0], len(names)), *item, _objects), items, "drawing masks")
    _report([labels for labels, _ in found], skip)
    return [mask for _, mask in found]


def _row(words, count):
    if any("_" in word for word in words):
        raise ValueError("numbers must have no underscores")
    numbers = tuple(map(float, words))
    kind, places = numbers[0], numbers[1:]
    if len(places) == BOX + 1:
        raise ValueError("a sixth number, as a confidence or the number of a track, does not belong to labels")
    if len(places) != BOX and (len(places) < 6 or len(places) % 2):
        raise ValueError("it must be a class with x, y, width and height, or with the x and y of three points or more")
    if not (0 <= kind < count and kind == int(kind)):
        raise ValueError(f"its class must be a whole number from 0 to {count - 1}")
    if not all(-ROUNDING <= place <= 1 + ROUNDING for place in places):
        raise ValueError("places and sizes must be shares of the image, from 0 to 1")
    return int(kind), places


def _has_area(places):
    return has_area(_edges(places))


def _edges(places):
    """Returns top, left, bottom and right of a box, or of the one around a polygon, inside the image."""
    if len(places) == BOX:
        x, y, width, height = places
        edges = (y - height / 2, x - width / 2, y + height / 2, x + width / 2)
    else:
        edges = (min(places[1::2]), min(places[::2]), max(places[1::2]), max(places[::2]))
    return tuple(min(max(edge, 0.0), 1.0) for edge in edges)


def _boxes(labels):
    rows = [(*_edges(places), kind) for kind, places in labels.rows]
    return labels._replace(rows=np.array(rows, "float32").reshape(-1, 5))  # a tenth of the memory of tuples


def _mask(labels, path, seen, draw):
    """Returns labels without their rows, and the `masks.Mask` that `draw` makes of these."""
    fault = labels.fault or seen.fault
    box = next((row for row in labels.rows if len(row[1]) == BOX), None)
    if fault is None and box:
        fault = f"{path}: a mask must be of polygons. Received: a box, {_shown(box)}"
    if fault:
        return labels._replace(rows=()), Mask(fault)
    width, height = seen.size
    polygons = [(kind, np.reshape(places, (-1, 2)) * (width, height)) for kind, places in labels.rows]
    try:
        drawn, empty = draw(polygons, (height, width))
    except ValueError as error:
        return labels._replace(rows=()), Mask(f"{path}: {error}")
    flat = [f"{path}: no pixel is inside. Received: {_shown(labels.rows[i])}" for i in empty]
    return labels._replace(rows=(), flat=(*labels.flat, *flat)), Mask(
        None, False, labels.digest, seen.size, None, drawn
    )


def _classes(polygons, size):
    return gray_png(filled([(kind + 1, points) for kind, points in polygons], size)), ()


def _objects(polygons, size):
    """Returns the PNG of a map of objects, and the positions of the polygons that are in none of its pixels."""
    values = object_values(np.array([kind for kind, _ in polygons], "int64"))
    mask = np.full(size, NONE, "int32")
    empty = draw(mask, [*zip(values, (points for _, points in polygons))])
    return png(mask), empty


def _shown(row):
    return f"{row[0]} {' '.join(map(str, row[1]))}"[:60]


def _report(found, skip):
    """Warns of rows that are left out; raises ValueError for those without area, unless `skip`."""
    repeated, flat = sum(labels.repeated for labels in found), [row for labels in found for row in labels.flat]
    if flat and not skip:
        raise ValueError(
            f"{len(flat)} objects have no area in their image. Repair them, or leave them out with "
            f"data.bad_images=skip:\n  {named(flat)}"
        )
    if flat:
        left_out(f"{len(flat)} objects, which have no area in their image", flat)
    if repeated:
        left_out(f"{repeated} objects that their files of labels repeat")


def filled(polygons, size):
    """Returns a mask of polygons, uint8 `(height, width)`; 0 is outside. Smaller ones are on top, then later ones.

    Args:
        polygons: Pairs of a value, 1 to 255, and points, x and y in pixels, `(points, 2)`.
        size: `(height, width)`.
    """
    mask = np.zeros(size, "uint8")
    draw(mask, polygons)
    return mask


def draw(mask, polygons):
    """Draws what `filled` returns into a mask; returns the positions of the polygons in which no pixel's center is."""
    empty = []
    for i in order([_area(points) for _, points in polygons]):
        value, points = polygons[i]
        if not _fill(mask, points, value):
            empty.append(int(i))
    return empty


def _area(points):
    x, y = points.T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def _fill(mask, points, value):
    """Sets the pixels whose centers are inside, by the even-odd rule: a bridge to a hole or to another part is none.

    Returns whether there are any.
    """
    (left, top), (right, bottom) = np.floor(points.min(0)).astype(int), np.ceil(points.max(0)).astype(int)
    left, top = max(left, 0), max(top, 0)
    part = mask[top : max(bottom, 0), left : max(right, 0)]
    (x, y), (height, width) = (points - (left, top)).T, part.shape
    rows, x_next, y_next = np.arange(height) + 0.5, np.roll(x, -1), np.roll(y, -1)
    row, edge = np.nonzero((y <= rows[:, None]) != (y_next <= rows[:, None]))  # each row's crossings with edges
    places = x[edge] + (rows[row] - y[edge]) * (x_next - x)[edge] / (y_next - y)[edge]
    columns = np.clip(np.ceil(places - 0.5), 0, width).astype(int)  # the first center to the right
    crossings = np.bincount(row * (width + 1) + columns, minlength=height * (width + 1)).reshape(height, width + 1)
    inside = np.cumsum(crossings, axis=1)[:, :-1] % 2 == 1
    part[inside] = value
    return inside.any()
