"""Arrays of boxes; the caller's as Keras has them: a dictionary of boxes and labels, in one of its formats."""

from typing import NamedTuple

import numpy as np
from keras.utils import bounding_boxes

from keras_vit.data.augment.boxes import EMPTY
from keras_vit.models.outputs import ignored
from keras_vit.utils import checks

FORMATS = ("xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw") + (
    *("rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh"),
)
NAMES = {"classes": "labels", "class": "labels", "label": "labels", "category": "labels", "bbox": "boxes"}
KEYS = {"boxes", "labels", "bounding_box_format"}
ROUNDING = 1e-4  # of the image's side, by which a box may be beyond it


class Rows(NamedTuple):
    """The boxes of one example in a format, with their labels last."""

    rows: np.ndarray  # (boxes, 5)


def from_dictionary(values, images):
    """Returns the boxes of a dictionary as an array, float32 `(images, most, 5)`, as in `boxes`.

    Args:
        values: `"boxes"`, of each image `(boxes, 4)`, and `"labels"`, `(boxes,)`: lists, ragged tensors, or arrays in
            which boxes with the label -1 are padding; `"bounding_box_format"`, a name of
            `keras.utils.bounding_boxes.convert_format`, such as `"xyxy"`, in pixels, or `"rel_xyxy"`, in shares. Labels
            may be called `"classes"`, as in KerasCV.
        images: Array, `(images, height, width, channels)`.

    Raises:
        ValueError: If something is missing, has another shape, or a box is not inside its image.
    """
    values = {NAMES.get(key, key): value for key, value in values.items()}
    if set(values) != KEYS:
        raise ValueError(
            f"A dictionary of boxes must have {', '.join(sorted(KEYS))}. The format, such as 'xyxy', says what the "
            f"numbers are. Received: {', '.join(map(str, values))}"
        )
    form = format_of(values["bounding_box_format"])
    try:
        boxes, labels = ([np.asarray(one) for one in values[key]] for key in ("boxes", "labels"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"Each image must have its boxes and labels as arrays or lists. Received: {error}") from None
    if not len(boxes) == len(labels) == len(images):
        raise ValueError(
            f"Each image must have boxes and labels. Received: {len(images)} images, boxes of {len(boxes)}, labels of "
            f"{len(labels)}"
        )
    rows = [_rows(*pair, f", for image {i}") for i, pair in enumerate(zip(boxes, labels))]
    return from_rows(rows, [images.shape[1:3]] * len(images), form)


def of_example(value):
    """Returns the `Rows` of one example.

    Args:
        value: A dictionary with `"boxes"` or `"bbox"`, and `"labels"`, `"classes"` or `"category"`, and maybe COCO's
            `"iscrowd"`; or a list of dictionaries, one for each box.
    """
    if isinstance(value, (list, tuple)):
        each = [{"iscrowd": 0, **{NAMES.get(key, key): of for key, of in box.items()}} for box in value]
        lacking = next((box for box in each if not {"boxes", "labels"} <= set(box)), None)
        named = lacking or {key: [box[key] for box in each] for key in ("boxes", "labels", "iscrowd")}
    else:
        named = {NAMES.get(key, key): of for key, of in value.items()}
    if not {"boxes", "labels"} <= set(named):
        raise ValueError(f"Boxes must be a dictionary with boxes and labels. Received: {', '.join(map(str, named))}")
    rows = _rows(np.asarray(named["boxes"]), np.asarray(named["labels"]))
    crowds = np.asarray(named.get("iscrowd", ()), bool)
    if crowds.any() and len(crowds) == len(rows):
        rows[crowds, 4] = ignored(rows[crowds, 4])
    return Rows(rows)


def format_of(form):
    """Returns a format's name; raises ValueError for an unknown one."""
    form = form.lower() if isinstance(form, str) else form
    if not isinstance(form, str) or form not in FORMATS:
        raise ValueError(
            f"`bounding_box_format` must be one of {', '.join(map(repr, FORMATS))}. Received: {checks.shown(form)}"
        )
    return form


def from_rows(rows, sizes, form):
    """Returns the boxes of images as one array, float32 `(images, most, 5)`, as in `boxes`.

    Args:
        rows: Of each image `(boxes, 5)`, boxes with their labels.
        sizes: `(height, width)` of each image.
        form: Name of the format.
    """
    ends = np.cumsum([0, *map(len, rows)])
    where, boxes = np.repeat(np.arange(len(rows)), np.diff(ends)), np.concatenate([np.zeros((0, 5)), *rows])
    sizes = np.array(sizes)
    for size in np.unique(sizes, axis=0):
        same = np.flatnonzero((sizes[where] == size).all(1))
        boxes[same, :4] = _converted(boxes[same, :4], where[same], form, tuple(size.tolist()))
    return padded(np.split(boxes, ends[1:-1]))


def padded(rows):
    """Returns one array of boxes, float32 `(images, most, 5)` as in `boxes`, of the rows of each image."""
    array = np.tile(np.array(EMPTY, "float32"), (len(rows), max(map(len, rows), default=0) or 1, 1))
    for place, row in zip(array, rows):
        if len(row):
            place[: len(row)] = row
    return array


def have_area(edges):
    """Returns whether boxes `(..., 4)` of shares have an area inside the image, in float32, in which they are kept."""
    edges = np.clip(np.asarray(edges, "float32"), 0, 1)
    return (edges[..., 0] < edges[..., 2]) & (edges[..., 1] < edges[..., 3])


def has_area(edges):
    """Returns what `have_area` does of one box, four numbers, ten times as fast."""
    top, left, bottom, right = (min(max(float(np.float32(edge)), 0.0), 1.0) for edge in edges)
    return top < bottom and left < right


def _rows(boxes, labels, where=""):
    """Returns the boxes of one image with their labels, `(boxes, 5)`."""
    boxes = boxes.reshape(0, 4) if not boxes.size else boxes
    labels = labels.reshape(0).astype("int64") if not labels.size else labels
    fits = boxes.ndim == 2 and boxes.shape[1] == 4 and labels.shape == boxes.shape[:1]
    if not fits or any(part.dtype.kind not in "fiu" for part in (boxes, labels)):
        raise ValueError(
            "Boxes must be numbers of the shape (boxes, 4) for each image, and labels of (boxes,). Received: "
            f"shapes {boxes.shape} and {labels.shape}, of {boxes.dtype} and {labels.dtype}{where}"
        )
    return np.hstack([boxes, labels[:, None]]).astype("float64")[labels != -1]


def _converted(boxes, where, form, size):
    """Returns boxes `(boxes, 4)` of images of one size as top, left, bottom and right in shares.

    Args:
        boxes, form, size: As in `from_rows`.
        where: The image of each box.
    """
    if not len(boxes):
        return boxes
    if not form.startswith("rel_") and boxes.max() <= 1:
        raise ValueError(
            f"Boxes of the format {form!r} must be in pixels. Received: numbers up to {boxes.max():g}, which look like "
            f"shares of the image, 'rel_...'"
        )
    edges = np.array(bounding_boxes.convert_format(boxes, form, "rel_yxyx", *size), "float64")
    inside = ((edges >= -ROUNDING) & (edges <= 1 + ROUNDING)).all(1)
    wrong = np.flatnonzero(~(have_area(edges) & inside))  # NaN too
    if len(wrong):
        i = wrong[0]
        raise ValueError(
            f"Boxes of the format {form!r} must have an area, inside their image of {size[1]} x {size[0]} pixels. "
            f"Received: {boxes[i].tolist()}, box {(where[:i] == where[i]).sum()} of image {where[i]}"
        )
    return np.clip(edges, 0, 1)
