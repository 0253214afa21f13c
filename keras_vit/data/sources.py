"""Images and targets by the name of their source, through a table with one reader for each kind of source."""

import os

import numpy as np

from keras_vit import checks
from keras_vit.data import folder, tfds
from keras_vit.data.folder import IMAGE_ENDINGS as IMAGE_ENDINGS
from keras_vit.data.memory import Source, lacks


def load(data, split, targets=("labels",), extras=()):
    """Reads one split of a data set.

    Args:
        data: A `keras_vit.config.Data`.
        split: Such as `"train"`, `"train[:90%]"` or `"all[80%:]"`.
        targets: Names of what is read beside images, of `targets.KINDS`.
        extras: Names of what is read too, where the data has it.

    Returns:
        A `memory.Source`; a `records.Stream` for a tensorflow-datasets set that does not fit into memory.

    Raises:
        ValueError: For an unknown source or split, targets that the data lacks, a folder that is empty or contains one
            class only, or an image that cannot be read (unless `data.bad_images` is `"skip"`).
        FileNotFoundError: If the folder does not exist, or the data is neither prepared nor downloadable.
    """
    kind, _, rest = data.source.partition(":")
    if kind not in READERS and _is_path(data.source):
        raise ValueError(
            f"A folder of images must be written 'folder:PATH'. Received: data.source={data.source!r}; did you mean "
            f"{'folder:' + data.source!r}?"
        )
    checks.one_of("data.source", kind, tuple(READERS))
    if (kind == "digits") == bool(rest):
        raise ValueError(
            f"`data.source` must be 'digits', 'tfds:NAME' or 'folder:PATH'. Received: data.source={data.source!r}"
        )
    source = READERS[kind](rest, split, data, tuple(targets), tuple(extras))
    if not len(source):
        raise ValueError(f"Split {split!r} of {data.source!r} is empty.")
    return source if data.limit is None else source.take(slice(data.limit))


def digits(_, split, data, targets, extras):
    """Returns scikit-learn's digits: 1,797 grey images of 8 x 8 pixels, which need no network."""
    from sklearn.datasets import load_digits

    missing = next((name for name in targets if name != "labels"), None)
    if missing:
        raise lacks("digits", missing, ["images", "labels"])
    pixels, labels = load_digits(return_X_y=True)
    images = np.rint(pixels.reshape(-1, 8, 8, 1) * (255 / 16)).astype("uint8")
    if "labels" not in (*targets, *extras):
        return Source(images, {}).part(split, "all")
    return Source(images, {"labels": labels.astype("int32")}, tuple("0123456789")).part(split, "all")


def from_arrays(arrays, targets, shape, class_names=()):
    """Returns the source of the caller's own arrays.

    Args:
        arrays: `(images, *targets)`; or `images` alone if there are no targets. Images are `(images, height, width,
            channels)`, 0..255; labels `(images,)`, integers; segmentation masks `(images, height, width)`, with or
            without a last axis of 1, integers from 0 to 255.
        targets: Their names, of `targets.KINDS`.
        shape: `(height, width, channels)` that the model takes.
        class_names: Names of the classes of labels.

    Raises:
        ValueError: If there are more or fewer arrays, or one has another shape, type or range.
    """
    if not targets and not isinstance(arrays, (tuple, list)):
        arrays = (arrays,)
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 1 + len(targets):
        known = ", ".join(["images", *(name.replace("_", " ") for name in targets)])
        wanted = {0: "images", 1: f"a pair ({known})"}.get(len(targets), f"({known})")
        kind = type(arrays).__name__ + (f" of {len(arrays)}" if isinstance(arrays, (tuple, list)) else "")
        raise ValueError(f"Arrays must be {wanted}. Received: {kind}")
    images = checks.pixels(arrays[0], shape)
    made = {name: OF_ARRAY[name](values, images, class_names) for name, values in zip(targets, arrays[1:])}
    return Source(images, made, tuple(class_names))


def check_channels(source, shape):
    """Returns the source. Raises ValueError unless a model of that image shape can take its images."""
    if shape[-1] not in source.channels:
        known = " or ".join(map(str, source.channels))
        raise ValueError(f"The model must have as many channels as the images, {known}. Received: {shape[-1]} channels")
    return source


def same_classes(first, second):
    """Raises ValueError unless two data sets have the same classes in the same order."""
    if tuple(first) != tuple(second):
        only = ", ".join(f"{name!r} only in one of them" for name in sorted(set(first) ^ set(second))[:10])
        raise ValueError(
            f"Both data sets must have the same classes in the same order. Received: {only or 'another order'}"
        )


def _labels(values, images, class_names):
    return checks.class_indices(values, len(class_names), len(images)).astype("int32")


def _masks(values, images, _):
    values = np.asarray(values)
    values = values[..., None] if values.ndim == 3 else values
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


def _is_path(text):
    return "/" in text or os.sep in text or text.startswith(("~", ".")) or os.path.isdir(text)


OF_ARRAY = {"labels": _labels, "segmentation_masks": _masks}
READERS = {"digits": digits, "tfds": tfds.read, "folder": folder.read}
