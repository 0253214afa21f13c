"""Images and targets of a caller's dataset, read once into memory.

Examples are sorted by a hash of their bytes: a dataset that is shuffled whenever it is read gives the same source.
"""

import hashlib

import numpy as np

from keras_vit.data import memory
from keras_vit.data.memory import Source
from keras_vit.data.readers import box_arrays, dataset_labels, examples, pictures, texts
from keras_vit.data.readers.box_arrays import Rows
from keras_vit.data.readers.table_cells import group_of
from keras_vit.data.targets import KINDS, usual
from keras_vit.utils import checks
from keras_vit.utils.images import image_size
from keras_vit.utils.names import composed
from keras_vit.utils.progress import passing


def read(dataset, task, data, shape, names=(), otherwise=tuple):
    """Returns the source of a dataset.

    Args:
        dataset: What `examples.is_dataset` is true for: of dictionaries, or of tuples `(image, *targets)`. An image is
            an array, `(height, width[, channels])`, 0..255, a Pillow image, an encoded file or its path. A label may be
            an index, a one-hot vector or a class name; several labels 0 or 1 for each class, or names, in a list or a
            text, or a list of indices where its type says so; a mask an array or a PNG; an instance mask an array;
            boxes `(count, 5)`, as in `boxes`, or what `box_arrays.of_example` takes, in the format of `data.columns`,
            such as `{"bounding_boxes": {"column": "objects", "format": "xywh"}}`.
        task: The recipe's task, whose `targets` are read.
        data: The recipe's `Data`; `columns` and `bad_images` are read.
        shape: `(height, width, channels)` that the model takes; the channels are read.
        names: Names of the classes, where the dataset does not state them.
        otherwise: Function that returns them where neither does.

    Raises:
        ValueError: For a dataset that has no end, is empty or does not fit into memory, that lacks a column, or has
            values that the task does not take.
    """
    given = data.columns or {}
    columns = _columns(dataset, task, given)
    several = "multilabels" in task.targets
    several = dataset_labels.reader(columns and columns["multilabels"], given.get("multilabels")) if several else None
    written = texts.TextColumns(columns["texts"] if columns else ("texts",), given) if "texts" in task.targets else None
    held, digests = _held(dataset, columns, task.targets, shape[2], {"multilabels": several, "texts": written})
    if written and "groups" not in held:
        held["groups"] = list(map(_bytes, held["images"]))  # texts of one image belong together
    pixels, readable = pictures.together(held.pop("images"), data.bad_images)
    held = {name: [values[i] for i in readable] for name, values in held.items()}
    groups = [group_of(value) for value in held.pop("groups")] if "groups" in held else None
    named = next((name for name in KINDS if name in held and KINDS[name].renamed), None)
    if named:
        stated = dataset_labels.of_flags(several) or examples.class_names(dataset, columns and columns[named][0])
        names = stated or names
    dataset_labels.check_all(held.get("labels", ()))
    found = dataset_labels.names_of(held[named]) if named and not names else ()
    names = names or found or otherwise()
    if several:
        if examples.has_indices(dataset, columns and columns["multilabels"][0]):
            held["multilabels"] = dataset_labels.of_indices(held["multilabels"], names)
        held["multilabels"] = dataset_labels.several_together(held["multilabels"], several, () if found else names)
    if any(isinstance(boxes, Rows) for boxes in held.get("bounding_boxes", ())):
        held["bounding_boxes"] = _in_shares(held["bounding_boxes"], pixels, given)
    targets = {name: KINDS[name].values(values, pixels, names) for name, values in held.items()}
    groups = None if groups is None else np.array(groups, "int64")
    order = sorted(range(len(pixels)), key=lambda i: digests[readable[i]])
    return Source(pixels, targets, tuple(names), groups=groups).take(np.array(order))


def _columns(dataset, task, given):
    """Returns a dictionary from images, targets and groups to names of columns, `None` for a dataset without names."""
    header = examples.header(dataset)
    if header is None:
        if given:
            raise ValueError(
                f"`data.columns` is for a dataset of dictionaries. "
                f"Received: {checks.shown(given)} with a {type(dataset).__name__} "
                "of others"
            )
        return None
    columns, known, written = {}, {*header}, {composed(str(each)): each for each in header}
    for name in ("images", *task.targets, *(["groups"] if "groups" in given else [])):
        first = next((each for each in usual(name) if each in header), examples.only(dataset, name))
        named = task.columns.get(name, ())
        named = named if first is None or {*named} <= known else ()
        asked = given.get(name) or named or [first]
        asked = asked.get("column") or asked.get("names") or [first] if isinstance(asked, dict) else asked
        found = (asked,) if isinstance(asked, str) else tuple(asked)
        found = tuple(written.get(composed(str(each)), each) for each in found)
        lacking = next((each for each in found if each not in known), None)
        if None in found or lacking:
            said = f"the column {lacking!r}" if lacking else f"{name}, such as {usual(name)[0]!r}"
            raise ValueError(
                f"A dataset must have {said}. Name it: data.columns={{{name!r}: 'COLUMN'}}. Received: "
                f"{', '.join(map(repr, header))}"
            )
        columns[name] = found
    return columns


def _held(dataset, columns, targets, channels, makers):
    """Returns all values of each target and of the images, dictionary of lists, and a hash of each example."""
    held, digests, size = {name: [] for name in columns or ("images", *targets)}, [], 0
    wanted = dict.fromkeys(name for found in columns.values() for name in found) if columns else None
    found = examples.examples(dataset, columns and columns["images"][0], wanted)
    for number, example in enumerate(passing(found, "reading examples: {n:,}", 3.0)):
        digest = hashlib.blake2b(digest_size=16)
        for name, value in _values(example, columns, targets, number).items():
            try:
                value = pictures.image(value, channels) if name == "images" else _value(name, value, makers)
            except (ValueError, FileNotFoundError) as error:
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


def _value(name, value, makers):
    """Returns the value of a target as an array, or as a number or text of Python; `makers` read several."""
    if name == "segmentation_masks":
        return pictures.mask(value)
    if name == "instance_masks":
        return pictures.instances(value)
    if name == "depths":
        return pictures.depth(value)
    first = value[0] if isinstance(value, list) and value else value
    if name == "bounding_boxes" and isinstance(first, dict):
        return box_arrays.of_example(value)
    if isinstance(value, dict):
        raise ValueError(
            f"{name.replace('_', ' ').capitalize()} must be arrays. Received: a dictionary of {list(value)}"
        )
    if name == "multilabels":
        return dataset_labels.several(value, makers[name])
    if name == "texts" and not (hasattr(value, "dtype") and value.dtype.kind in "iu"):
        return makers[name].parse([value])
    if hasattr(value, "shape"):
        value = np.asarray(value)
        value = value.item() if value.size == 1 and name != "bounding_boxes" else value
    value = value.decode() if isinstance(value, bytes) else value
    return dataset_labels.one(value, makers["texts"] is not None) if name == "labels" else value


def _bytes(value):
    value = value.rows if isinstance(value, Rows) else value
    if isinstance(value, np.ndarray):
        return repr(value.shape).encode() + value.tobytes()
    return value if isinstance(value, bytes) else repr(value).encode()


def _in_shares(values, images, columns):
    """Returns the boxes of `Rows` as arrays `(count, 5)`, as in `boxes`."""
    column = columns.get("bounding_boxes")
    form = column.get("format") if isinstance(column, dict) else None
    if form is None:
        raise ValueError(
            "Boxes in dictionaries need their format, such as 'xywh' in pixels, COCO's: "
            "data.columns={'bounding_boxes': {'column': 'objects', 'format': 'xywh'}}. Received: no format"
        )
    sizes = [images.shape[1:3]] * len(images) if images.ndim == 4 else list(map(image_size, images))
    rows = [value.rows if isinstance(value, Rows) else np.reshape(value, (-1, 5)) for value in values]  # or `[]`
    return box_arrays.from_rows(rows, sizes, box_arrays.format_of(form))
