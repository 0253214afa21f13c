"""Pictures of any bands and depth in a pipeline: brought to the scale of 0 to 255 when read, and back for the model.

So cropping, resizing and augmentation are the same for all pictures, and the model's first layer holds the numbers of
the data.
"""

import dataclasses
import os

import numpy as np
import tensorflow as tf

from keras_vit.data import deep_inspection
from keras_vit.layers import Rescale
from keras_vit.utils import bands, checks, deep_files
from keras_vit.utils.folders import shown
from keras_vit.utils.value_range import by_band, ends, from_bytes, to_bytes

OPTIONS = ("bands", "pages", "value_range", "no_data")  # of `Data`, any of which makes pictures deep
WORDS = ("minmax", "percentiles")  # of `value_range`, which is measured then


def check_task(source, task):
    """Raises ValueError for pictures of bands where a task does not see them."""
    if getattr(source, "bands", None) is not None and not task.any_range:
        raise ValueError(
            f"{type(task).__name__} sees pictures of 8 bits alone, without TIFF, arrays in files, data.bands and "
            "data.value_range. Received: pictures that are read as bands"
        )


def options_of(data):
    """Returns the options of a `Data` that are for pictures of any bands and depth, by name, and are set."""
    return {name: getattr(data, name) for name in OPTIONS if getattr(data, name) is not None}


def is_deep(source, data):
    """Returns whether the images of a source must be read as bands: by their endings, or as options ask for it."""
    if not source.files:
        return bool(options_of(data))
    return bool(options_of(data)) or any(map(deep_files.is_named, source.images))


def of_files(source, data):
    """Returns a source of files with the number of `bands` that a model sees, after a check of their headers.

    Raises:
        ValueError: If they have other bands or types, pages that could be frames, a range or pixels without data that
            `data` does not state, or are too large.
    """
    paths = list(map(str, source.images))
    deep = [path for path in paths if deep_files.is_named(path)]
    headers = deep_inspection.headers(deep)
    counts = {}
    for path, header in zip(deep, headers):
        if header.pages > 1 and data.pages is None:
            raise ValueError(
                f'{shown(path)!r} has {header.pages} pages: data.pages="bands" makes them the bands of one picture.'
            )
        left = header.unmasked(data.no_data)
        if left == deep_inspection.INFINITE:
            raise ValueError(f"{shown(path)!r} must have finite numbers, or NaN. Received: infinite pixels")
        if left:
            raise ValueError(
                f"{shown(path)!r} has pixels of NaN, or the value of no data that it states: "
                f"data.no_data='nan', 'file' or a number masks them. Received: data.no_data={data.no_data!r}"
            )
        if header.dtype != "u1" and data.value_range is None:
            kind = np.dtype(header.dtype).name
            raise ValueError(
                "Pictures of more than 8 bits need data.value_range: (low, high), such a pair for each band, 'minmax' "
                f"or 'percentiles' of the training images. Received: {shown(path)!r} of {kind}"
            )
        counts.setdefault(header.bands, path)
    for path in set(paths) - {*deep}:
        counts.setdefault(bands.count_of(path), path)
    _check_depths(paths, dict(zip(deep, headers)))
    if data.bands is not None:
        for path in counts.values():
            bands.check_bands(path, bands.reading_of(data))
        return dataclasses.replace(source, bands=len(data.bands))
    if len(counts) > 1:
        (one, first), (other, second) = list(counts.items())[:2]
        raise ValueError(
            "Pictures must have the same number of bands, or data.bands must pick them. Received: "
            f"{one} in {shown(first)!r} and {other} in {shown(second)!r}"
        )
    return dataclasses.replace(source, bands=next(iter(counts)))


def _check_depths(paths, headers):
    """Raises ValueError for pictures of 8 bits among others, which no range fits."""
    eight, more = {}, {}
    for path in paths:
        found = headers[path].dtype != "u1" if path in headers else deep_files.is_deep(path)
        (more if found else eight).setdefault("path", path)
    if eight and more:
        raise ValueError(
            f"Pictures of 8 bits and of more must not be mixed. Received: {shown(eight['path'])!r} of 8 bits and "
            f"{shown(more['path'])!r} of more"
        )


def check_model(model, data):
    """Raises ValueError for a model with the range of bands of its weights where the data are read as bytes."""
    layer = next((layer for layer in model.layers if isinstance(layer, Rescale)), None)
    if data.value_range is None and layer is not None and by_band(layer.limits):
        raise ValueError(
            "The weights are of a model of pixels in ranges of its own for each band: data.value_range must be given. "
            f"Received: data.value_range=None, and a model of value_range={checks.shown(layer.value_range)}"
        )


def kept(source, data):
    """Returns what a model's metadata says of how its pictures are read, as `bands`; nothing of bytes."""
    if getattr(source, "bands", None) is None:
        return {}
    options = {name: value for name, value in bands.reading_of(data)._asdict().items() if value is not None}
    return {bands.KEPT: {"count": source.bands, **options}}


def opener(data, channels):
    """Returns the function from a path, a scalar string tensor, to float32 `(height, width, channels)`, 0..255."""
    reading = bands.reading_of(data)

    def read(path):
        return bands.read(os.fsdecode(path), reading, channels)

    def pixels_of(path):
        pixels = tf.numpy_function(read, [path], "float32", stateful=False)
        return scaled(tf.ensure_shape(pixels, (None, None, channels)), data)

    return pixels_of


def scaled(images, data):
    """Returns pixels of the data on the scale of 0 to 255, float32: those outside the range are clipped.

    A pixel without data gets the lowest value.
    """
    images = tf.cast(images, "float32")
    low, high = ends(bands.range_of(data))
    images = tf.where(tf.math.is_nan(images), low, images)
    return to_bytes(tf.clip_by_value(images, low, high), (low, high))


def in_units(examples, data):
    """Returns examples whose images, 0..255, are in the range of the data, as the model takes them."""
    if data.value_range is None:
        return examples
    return {**examples, "images": from_bytes(examples["images"], bands.range_of(data))}


def are_encoded(images, source):
    """Returns whether a tensor has the bytes of image files: neither pixels nor paths."""
    return images.dtype == tf.string and getattr(source, "bands", None) is None


def opened(items, source, data, channels):
    """Returns items of a source, a dictionary, with pixels as `images`, 0..255; those of bytes as they are."""
    if getattr(source, "bands", None) is None:
        return items
    if items["images"].dtype == tf.string:  # else they are windows, or arrays
        return {**items, "images": opener(data, channels)(items["images"])}
    return {**items, "images": scaled(items["images"], data)}


def of_arrays(images, data, shape):
    """Returns the caller's own images as a source has them, after a check: of any type, in the range of the data.

    Args:
        images: Array, `(images, height, width, bands)`.
        data: A `Data` whose options ask for it.
        shape: `(height, width, channels)` that the model takes.

    Raises:
        ValueError: For another shape or type, or pixels without data that `data` does not state.
    """
    if data.pages is not None or data.no_data == bands.FILE:
        raise ValueError("data.pages and data.no_data='file' are for files. Received: arrays")
    images = np.asarray(images)
    if data.bands is not None and images.ndim == 4:
        known = range(1, images.shape[3] + 1)
        other = next((band for band in data.bands if band not in known), None)
        if other is not None:
            raise ValueError(f"data.bands of arrays must be numbers from 1 to {images.shape[3]}. Received: {other!r}")
        images = images[..., [band - 1 for band in data.bands]]
    images = checks.batch(images, shape)
    unknown = bands.is_unknown(images, data.no_data, None)
    bad = ~np.isfinite(images) if unknown is None else ~np.isfinite(images) & ~unknown
    if bad.any():
        raise ValueError("`images` must be finite numbers, or data.no_data='nan' masks NaN. Received: NaN or infinity")
    if unknown is not None and unknown.any():
        images = images.astype("float32")
        for i in np.flatnonzero(unknown.any((1, 2, 3))):
            images[i] = bands.filled(images[i], unknown[i])
    return images
