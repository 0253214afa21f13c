"""What a file is compared with its model on: the caller's images and texts, or random ones."""

import numpy as np

from keras_vit.layers import EndPool
from keras_vit.models.autoencoder import takes_latents
from keras_vit.models.inputs import CLIPS, fed, named
from keras_vit.preparing import pixel_range
from keras_vit.utils import clip_files
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.value_range import from_bytes


def sample(about, images):
    """Returns what a model is called with: the caller's images, texts or dictionary of both, or eight random ones.

    Args:
        about: The model's `Traits`.
        images: As in `export_tflite`.

    Raises:
        ValueError: For images that the model does not take, ids outside its table, or another number of each.
    """
    if images is None:
        return drawn(about)
    shapes = about.inputs
    examples = named(images, shapes)
    if set(examples) != set(shapes):
        received = ", ".join(map(repr, examples)) if isinstance(images, dict) else type(images).__name__
        raise ValueError(f"`images` must be a dictionary of {', '.join(map(repr, shapes))}. Received: {received}")
    checked = {name: CHECKED[name](about, examples[name], shape) for name, shape in shapes.items()}
    counts = {name: len(values) for name, values in checked.items()}
    if len({*counts.values()}) > 1:
        raise ValueError(f"Inputs must have as many examples each. Received: {counts}")
    return fed(checked, shapes)


def drawn(about, count=8):
    """Returns what a model is called with: random pixels in its range, float32, random ids of its table, int32."""
    shapes = about.inputs
    return fed({name: DRAWN[name](about, (count, *shape)) for name, shape in shapes.items()}, shapes)


def _pixels(about, images, shape):
    if "times" in about.inputs or takes_latents(about.model):  # on their way from noise: of any size
        return _noisy(images, shape)
    if len(shape) == CLIPS - 1:
        return _clips(about, images, shape)
    return pixel_range.checked(about.model, images, shape).astype("float32")


def _clips(about, values, shape):
    return clip_files.checked(values, shape, value_range=about.range).astype("float32")


def _noisy(images, shape):
    images = np.asarray(images)
    if images.dtype.kind not in "iuf" or images.shape[1:] != shape or not len(images) or not np.isfinite(images).all():
        raise ValueError(
            f"Noisy images must be finite numbers (batch, {', '.join(map(str, shape))}). Received: shape={images.shape}"
        )
    return images.astype("float32")


def _ids(about, ids, shape):
    ids, rows = np.asarray(ids), about.words[1] or np.inf
    if ids.dtype.kind not in "ui" or ids.shape[1:] != shape or not len(ids) or ids.min() < 0 or ids.max() >= rows:
        raise ValueError(
            f"Texts must be ids of the model's table, integers (batch, {shape[0]}) from 0 to below {rows}. "
            f"Received: shape={ids.shape}, dtype={ids.dtype}{_span(ids)}"
        )
    return ids.astype("int32")


def _span(values):
    """Returns from where to where numbers go, as words for an error."""
    return f", values from {values.min()} to {values.max()}" if values.size and values.dtype.kind in "uif" else ""


def _random_pixels(about, shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype("float32")
    return from_bytes(pixels, about.range or (0, 1))


def _random_ids(about, shape):
    """Returns texts of random lengths, each with its end where the model looks for one, filled with zeros."""
    random, places = np.random.default_rng(0), np.arange(shape[1])
    last = random.integers(0, shape[1], (shape[0], 1))
    ids = random.integers(0, about.words[1] or 2, shape)
    ends = (layer.end for layer in sublayers(about.model) if isinstance(layer, EndPool))
    ids[places == last] = next(ends, None) or 0
    ids[places > last] = 0
    return ids.astype("int32")


def _times(about, times, shape):
    times = np.asarray(times)
    if times.dtype.kind not in "iuf" or times.ndim != 1 or not np.isfinite(times).all():
        raise ValueError(f"Times must be finite numbers (batch,). Received: shape={times.shape}, dtype={times.dtype}")
    return times.astype("float32")


def _labels(about, labels, shape):
    labels, rows = np.asarray(labels), about.words[1]
    if labels.dtype.kind not in "iu" or labels.ndim != 1 or not len(labels) or labels.min() < 0 or labels.max() >= rows:
        raise ValueError(
            f"Labels must be integers (batch,) from 0 to below {rows}. "
            f"Received: shape={labels.shape}, dtype={labels.dtype}{_span(labels)}"
        )
    return labels.astype("int32")


def _random_times(about, shape):
    return np.random.default_rng(0).random(shape, "float32")


def _random_labels(about, shape):
    return np.random.default_rng(0).integers(0, about.words[1], shape).astype("int32")


CHECKED = {"images": _pixels, "references": _pixels, "clips": _clips, "texts": _ids, "times": _times, "labels": _labels}
DRAWN = {
    "images": _random_pixels,
    "references": _random_pixels,
    "clips": _random_pixels,
    "texts": _random_ids,
    "times": _random_times,
    "labels": _random_labels,
}
