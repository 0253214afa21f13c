"""Images and targets of a caller's dataset, read once into memory.

Examples are sorted by a hash of their bytes: a dataset that is shuffled whenever it is read gives the same source.
"""

import hashlib
import sys

import numpy as np

from keras_vit.data import memory
from keras_vit.data.augment.boxes import EMPTY
from keras_vit.data.memory import Source
from keras_vit.data.readers import examples, pictures, table
from keras_vit.data.readers.arrays import OF_ARRAY
from keras_vit.utils.progress import line

USUAL = {  # names of columns where `Data.columns` does not say which it is; the first that the dataset has
    "images": ("image", "images", "img"),
    "labels": ("label", "labels", "class", "category"),
    "numbers": ("numbers", "number"),
    "segmentation_masks": ("segmentation_mask", "segmentation_masks", "mask", "masks", "annotation"),
    "bounding_boxes": ("bounding_boxes", "boxes"),
}


def read(dataset, task, data, shape, names=(), otherwise=tuple):
    """Returns the source of a dataset.

    Args:
        dataset: What `examples.is_dataset` is true for: of dictionaries, or of tuples `(image, *targets)`. An image is
            an array, `(height, width[, channels])`, 0..255, a Pillow image, an encoded file or its path. A label may be
            an index, a one-hot vector or a class name; a mask an array or a PNG; boxes `(count, 5)`, as in `boxes`.
        task: The recipe's task, whose `targets` are read.
        data: The recipe's `Data`; `columns` and `bad_images` are read.
        shape: `(height, width, channels)` that the model takes; the channels are read.
        names: Names of the classes, where the dataset does not state them.
        otherwise: Function that returns them where neither does.

    Raises:
        ValueError: For a dataset that has no end, is empty or does not fit into memory, that lacks a column, or has
            values that the task does not take.
    """
    columns = _columns(dataset, task, data.columns or {})
    held = _sorted(_held(dataset, columns, task.targets, shape[2]))
    pixels, readable = pictures.together(held.pop("images"), data.bad_images)
    held = {name: [values[i] for i in readable] for name, values in held.items()}
    groups = [table.group_of(value) for value in held.pop("groups")] if "groups" in held else None
    if "labels" in held:
        names = examples.class_names(dataset, columns and columns["labels"][0]) or names or _texts(held["labels"])
    names = names or otherwise()
    targets = {name: MADE.get(name, _array)(name, values, pixels, names) for name, values in held.items()}
    return Source(pixels, targets, tuple(names), groups=None if groups is None else np.array(groups, "int64"))


def _columns(dataset, task, given):
    """Returns a dictionary from images, targets and groups to names of columns, `None` for a dataset without names."""
    header = examples.header(dataset)
    if header is None:
        if given:
            raise ValueError(
                f"`data.columns` is for a dataset of dictionaries. Received: {given!r} with a {type(dataset).__name__} "
                "of others"
            )
        return None
    columns = {}
    for name in ("images", *task.targets, *(["groups"] if "groups" in given else [])):
        usual = next((each for each in USUAL.get(name, (name,)) if each in header), examples.only(dataset, name))
        asked = given.get(name) or (usual is None and task.columns.get(name)) or [usual]
        found = (asked,) if isinstance(asked, str) else tuple(asked)
        lacking = next((each for each in found if each not in header), None)
        if None in found or lacking:
            said = f"the column {lacking!r}" if lacking else f"{name}, such as {USUAL.get(name, (name,))[0]!r}"
            raise ValueError(
                f"A dataset must have {said}. Name it: data.columns={{{name!r}: 'COLUMN'}}. Received: "
                f"{', '.join(map(repr, header))}"
            )
        columns[name] = found
    return columns


def _held(dataset, columns, targets, channels):
    """Returns all values of each target and of the images, dictionary of lists, and a hash of each example."""
    held, digests, size = {name: [] for name in columns or ("images", *targets)}, [], 0
    wanted = dict.fromkeys(name for found in columns.values() for name in found) if columns else None
    found = examples.examples(dataset, columns and columns["images"][0], wanted)
    for number, example in enumerate(_shown(found)):
        digest = hashlib.blake2b(digest_size=16)
        for name, value in _values(example, columns, targets, number).items():
            try:
                value = pictures.image(value, channels) if name == "images" else _value(name, value)
            except ValueError as error:
                raise ValueError(f"Example {number}: {error}") from None
            held[name].append(value)
            digest.update(_bytes(value))
            size += len(value) if isinstance(value, bytes) else getattr(value, "nbytes", 64)
        digests.append(digest.digest())
        if not memory.fits(size):
            raise ValueError(
                f"A dataset must fit into memory, {memory.SHARE * memory.total() / 1e9:.1f} GB a split. Received: "
                f"more than that in {number + 1} examples. Save it as a folder of images, or as TFRecord files of "
                "tensorflow-datasets: these are read while training"
            )
    if not digests:
        raise ValueError(f"A dataset must have one example or more. Received: an empty {type(dataset).__name__}")
    return held, digests


def _shown(found):
    """Yields examples, and shows on standard error how many were read, if it takes more than a few seconds."""
    with line(None, "reading examples: {n:,}", 3.0, sys.stderr, leave=False) as shown:
        for example in found:
            yield example
            shown.update()


def _sorted(found):
    held, digests = found
    order = sorted(range(len(digests)), key=digests.__getitem__)
    return {name: [values[i] for i in order] for name, values in held.items()}


def _values(example, columns, targets, number):
    """Returns the values of one example by target, that of the images among them."""
    if columns is None:
        parts = example if isinstance(example, (tuple, list)) else (example,)
        if len(parts) != 1 + len(targets):
            wanted = ", ".join(["image", *(name.removesuffix("s").replace("_", " ") for name in targets)])
            raise ValueError(f"Examples must be ({wanted}). Received: {len(parts)} values in example {number}")
        return dict(zip(("images", *targets), parts))
    try:
        each = {name: [example[column] for column in found] for name, found in columns.items()}
    except (KeyError, TypeError):
        has = ", ".join(map(repr, example)) if isinstance(example, dict) else type(example).__name__
        raise ValueError(f"Examples must have the same columns. Received: {has} in example {number}") from None
    return {name: values[0] if len(values) == 1 else values for name, values in each.items()}


def _value(name, value):
    """Returns the value of a target as an array, or as a number or text of Python."""
    if name == "segmentation_masks":
        return pictures.mask(value)
    if isinstance(value, dict):
        raise ValueError(
            f"{name.replace('_', ' ').capitalize()} must be arrays. Received: a dictionary of {list(value)}"
        )
    if hasattr(value, "shape"):
        value = np.asarray(value)
        value = value.item() if value.size == 1 and name != "bounding_boxes" else value
    return value.decode() if isinstance(value, bytes) else value


def _bytes(value):
    if isinstance(value, np.ndarray):
        return repr(value.shape).encode() + value.tobytes()
    return value if isinstance(value, bytes) else repr(value).encode()


def _texts(labels):
    """Returns the names of the classes of labels that are texts, sorted."""
    return table.in_order(set(labels)) if all(isinstance(label, str) for label in labels) else ()


def _labels(_, labels, images, names):
    if all(isinstance(label, str) for label in labels):
        places = {name: i for i, name in enumerate(names)}
        unknown = sorted(set(labels) - set(places))
        if unknown:
            raise ValueError(f"Labels must be names of the classes, {', '.join(names)}. Received: {unknown[0]!r}")
        labels = [places[label] for label in labels]
    array = np.asarray(labels)
    if array.ndim == 2:
        if array.shape[1] != len(names) or not (((array == 0) | (array == 1)).all() and (array.sum(1) == 1).all()):
            raise ValueError(
                f"A vector for each image must be one-hot, with {len(names)} classes. Received: shape={array.shape}, "
                f"such as {array[0].tolist()!s:.100}"
            )
        array = array.argmax(1)
    whole = array.dtype.kind == "b" or (array.dtype.kind == "f" and not (array % 1).any())
    return OF_ARRAY["labels"](array.astype("int64") if whole else array, images, names)


def _array(name, values, images, names):
    return OF_ARRAY[name](np.asarray(values), images, names)


def _boxes(name, values, images, names):
    values = [
        np.asarray(boxes, "float32").reshape(-1, 5) if np.size(boxes) == 0 else np.asarray(boxes) for boxes in values
    ]
    wrong = next((i for i, boxes in enumerate(values) if boxes.ndim != 2 or boxes.shape[1] != 5), None)
    if wrong is not None:
        raise ValueError(f"Boxes must have the shape (count, 5). Received: shape={values[wrong].shape}")
    padded = np.full((len(values), max(1, *map(len, values), 1), 5), EMPTY, "float32")
    for row, boxes in zip(padded, values):
        row[: len(boxes)] = boxes
    return OF_ARRAY[name](padded, images, names)


def _masks(_, values, images, __):
    return pictures.masks_together(values, images)


MADE = {  # of targets whose values are more than the rows of an array
    "labels": _labels,
    "bounding_boxes": _boxes,
    "segmentation_masks": _masks,
}
