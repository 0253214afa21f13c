"""Targets that the caller has as arrays, checked: a column of `data/targets.py`.

Each function takes the values, the images and the names of the classes, and returns the array of the source.
"""

import numpy as np

from keras_vit.data.augment.boxes import EMPTY
from keras_vit.data.readers import box_arrays, dataset_labels
from keras_vit.models.outputs import ignored
from keras_vit.utils import checks, instance_maps
from keras_vit.utils.depth_maps import depth_pixels


def are_texts(values):
    return values.dtype.kind in "SUO" and values.size and isinstance(values.flat[0], (str, bytes))


def texts_of(values):
    """Returns labels that are texts as a list of names; raises ValueError for one that is none."""
    values = values.reshape(-1) if values.shape[1:] == (1,) else values
    found = []
    dataset_labels.check_all(values.tolist())
    for number, value in enumerate(values.tolist()):
        try:
            found.append(dataset_labels.one(value.decode() if isinstance(value, bytes) else value))
        except ValueError as error:
            raise ValueError(f"Label {number}: {error}") from None
    return found


def named(values):
    """Returns the reader of several labels that are lists of texts, and the names of each image; `None` of others."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return None
    rows = list(values) if hasattr(values, "__len__") and not isinstance(values, (str, bytes, dict)) else []
    if not any(isinstance(row, (list, tuple, np.ndarray)) and len(row) and isinstance(row[0], str) for row in rows):
        return None
    maker = dataset_labels.reader(None, None)
    return maker, [dataset_labels.several(row, maker) for row in rows]


def labels(values, images, class_names):
    values = np.asarray(values)
    if are_texts(values) or (values.ndim == 1 and values.dtype.kind in "bfO"):
        values = dataset_labels.indices(texts_of(values) if are_texts(values) else values.tolist(), class_names)
    if values.ndim == 2 and 1 < values.shape[1] == len(class_names) and np.isin(values, (0, 1)).all():
        if not (values.sum(1) == 1).all():
            raise ValueError(
                "An image must have one label; several labels are for Classify(multilabel=True). "
                f"Received: {int(values[values.sum(1) != 1][0].sum())} labels of an image, shape={values.shape}"
            )
        values = values.argmax(1)  # one-hot vectors
    return checks.class_indices(values, len(class_names), len(images)).astype("int32")


def _with_channel(values):
    """Returns maps as an array, `(images, height, width, 1)`, from these or `(images, height, width)`."""
    values = np.asarray(values)
    return values[..., None] if values.ndim == 3 else values


def masks(values, images, _):
    values = _with_channel(values)
    if values.shape != (*images.shape[:3], 1) or values.dtype.kind not in "ui":
        raise ValueError(
            f"Segmentation masks must be integers of the shape {images.shape[:3]}, as the images. "
            f"Received: shape={values.shape}, dtype={values.dtype}"
        )
    if values.size and not 0 <= values.min() <= values.max() <= 255:
        raise ValueError(
            f"Segmentation masks must be class indices from 0 to 255. Received: {values.min()} to {values.max()}"
        )
    return values.astype("uint8")


def instances(values, images, class_names):
    values = _with_channel(values)
    if values.shape != (*images.shape[:3], 1) or values.dtype.kind not in "ui":
        raise ValueError(
            f"Instance masks must be integers of the shape {images.shape[:3]}, as the images, a "
            f"`keras_vit.instance_map` each. Received: shape={values.shape}, dtype={values.dtype}"
        )
    check_instances(values, class_names)
    return values.astype("int32", copy=False)


def check_instances(maps, class_names):
    """Raises ValueError unless maps of objects, integers of any shape, are of the classes of these names."""
    for number, values in enumerate(maps):
        if fault := instance_maps.fault(values, len(class_names)):
            raise ValueError(f"Instance mask {number}: {fault}")


def depths(values, images, _):
    values = _with_channel(values)
    if values.shape != (*images.shape[:3], 1):
        raise ValueError(
            f"Maps of depth must be numbers of the shape {images.shape[:3]}, as the images. "
            f"Received: shape={values.shape}, dtype={values.dtype}"
        )
    return np.stack([depth_pixels(value) for value in values])[..., None]


def boxes(values, images, class_names):
    values = box_arrays.from_dictionary(values, images) if isinstance(values, dict) else np.asarray(values)
    fits = values.ndim == 3 and values.shape[::2] == (len(images), 5) and values.shape[1] and values.dtype.kind in "fiu"
    if not fits:
        raise ValueError(
            f"Boxes must be numbers of the shape ({len(images)}, most, 5): top, left, bottom, right as shares of the "
            f"image, and the class, -1 where empty. Received: shape={values.shape}, dtype={values.dtype}"
        )
    values = values.astype("float32")
    top, left, bottom, right, classes = np.moveaxis(values, -1, 0)
    kinds = np.where(classes < -1, ignored(classes), classes)  # those of regions to ignore too
    known = np.arange(len(class_names) or max(kinds.max(), 0) + 1)
    in_order = (top >= 0) & (top < bottom) & (bottom <= 1) & (left >= 0) & (left < right) & (right <= 1)
    wrong = np.argwhere((classes != -1) & ~(in_order & np.isin(kinds, known)))
    if len(wrong):
        image, row = wrong[0]
        raise ValueError(
            f"Boxes must have 0 <= top < bottom <= 1, 0 <= left < right <= 1, and a class from 0 to {len(known) - 1}. "
            f"Received: {values[image, row].tolist()} of image {image}"
        )
    return np.where(classes[..., None] == -1, np.float32(EMPTY), values)


def numbers(values, images, _):
    values = np.asarray(values)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(images) or values.dtype.kind not in "fiu":
        raise ValueError(
            f"Numbers must be an array of the shape ({len(images)},) or ({len(images)}, numbers). "
            f"Received: shape={values.shape}, dtype={values.dtype}"
        )
    wrong = np.argwhere(~(np.abs(values.astype("float64")) <= np.finfo("float32").max))
    if len(wrong):
        raise ValueError(
            f"Numbers must be finite, in float32. Received: {values[tuple(wrong[0])]} of image {wrong[0][0]}"
        )
    return values.astype("float32")


def multilabels(values, images, class_names):
    if rows := named(values):
        values = dataset_labels.several_together(rows[1], rows[0], class_names)
    values, shape = np.asarray(values), (len(images), len(class_names))
    if values.shape != shape or values.dtype.kind not in "bfiu":
        raise ValueError(
            f"Several labels must be 0 or 1, and NaN or -1 where unknown, of the shape {shape}: a column for each "
            f"class. Received: shape={values.shape}, dtype={values.dtype}"
        )
    values = np.where(np.isnan(values), -1, values) if values.dtype.kind == "f" else values
    wrong = np.argwhere(~np.isin(values, (-1, 0, 1)))
    if len(wrong):
        raise ValueError(
            "Several labels must be 0 or 1, and NaN or -1 where unknown. "
            f"Received: {values[tuple(wrong[0])]} of image {wrong[0][0]}"
        )
    return values.astype("int8")
