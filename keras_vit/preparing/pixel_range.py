"""Which pixels a model takes: layers before its first weights are looked up, or computed if they are not ours."""

import collections
from typing import NamedTuple

import keras
import numpy as np

from keras_vit.layers.inputs.rescale import Rescale
from keras_vit.models.backbone import leading_to, outputs_of
from keras_vit.models.between import between
from keras_vit.utils import checks
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.value_range import by_band
from keras_vit.utils.warned import warn

RESCALING = (Rescale, keras.layers.Rescaling, keras.layers.Normalization)
NORMS = (keras.layers.BatchNormalization, keras.layers.LayerNormalization, keras.layers.GroupNormalization)
HIGHEST = (1, 255, 65535)  # pixels, one of which a model takes that brings them to about 1
SPANS = (0.5, 20, 2.1)  # of what the first weights see, lowest pixel to highest; the last of those not centered
CENTERED = (0.25, 0.75)  # part of the range in which a mean is that is subtracted, as for ResNets of Caffe
DARK = 200  # the part of the range that images do not stay below, unless they are in another
LARGE = 20  # numbers that no rescaled pixels have
ANY = 32  # a side of images of any size


class First(NamedTuple):
    """The first layer with weights, or the `Rescale` before it, which is given `scale * pixel + offset`."""

    layer: keras.Layer
    scale: float
    offset: float
    normalized: bool  # whether a normalization by its batch or by each image follows


def range_of(model):
    """Returns the range of the pixels that a model takes, `(low, high)`, or `(lows, highs)` with one for each band.

    Its layer `Rescale` states it. Else the first weights must see numbers near 1: of `keras.layers.Rescaling` or
    `Normalization`, or of operations such as `images / 255`, it follows for which pixels they do. `None` if pixels are
    not rescaled at all, or if it cannot be told.
    """
    first = _first(model)
    if first is None:
        rescale = next((layer for layer in sublayers(model) if isinstance(layer, Rescale)), None)
        return rescale and rescale.limits
    rescale = next((layer for layer in sublayers(first.layer) if isinstance(layer, Rescale)), None)
    if rescale is not None:
        if by_band(rescale.limits):
            return rescale.limits if _is_unchanged(first) else None
        return tuple(_plain((end - first.offset) / first.scale) for end in rescale.limits)
    if _is_unchanged(first) or any(isinstance(layer, RESCALING) for layer in sublayers(first.layer)):
        return None
    mean = -first.offset / first.scale
    widest = SPANS[1] if first.offset else SPANS[2]
    fits = [high for high in HIGHEST if SPANS[0] <= first.scale * high <= widest and -1e-3 * high <= mean <= high]
    fits = fits or [high for high in HIGHEST[1:] if CENTERED[0] * high <= mean <= CENTERED[1] * high]
    return (0, fits[0]) if fits else None


def rescales_nothing(model):
    """Returns whether pixels reach the first weights of a model as they are, and no normalization follows."""
    first = _first(model)
    inside = [] if first is None else sublayers(first.layer)
    return first is not None and _is_unchanged(first) and not first.normalized and not _any(inside, RESCALING)


def checked(model, images, shape=None, name="images", known=...):
    """Returns a batch of images as an array; warns of pixels in a model that rescales nothing.

    Args:
        model: The model that will take them.
        images: As in `checks.pixels`.
        shape: As there.
        name: As there.
        known: The model's range, where the caller has asked for it.

    Raises:
        ValueError: As `checks.pixels`, if they are not in the model's range.
    """
    known = range_of(model) if known is ... else known
    images = checks.pixels(images, shape, name, known)
    if known is None:
        warn_unscaled(model, images, name)
    elif not by_band(known) and known[0] == 0 and 1 < (high := float(images.max())) <= known[1] / DARK:
        warn(
            f"{model.name!r} takes pixels from 0 to {known[1]:g}, of which these are nearly black: does it rescale "
            f"them twice? Received: `{name}` up to {high:g}"
        )
    return images


def refuse_binary(images, value_range, name="images"):
    """Raises ValueError for zeros and ones, as of scans in black and white, where pixels go up to 255 or further."""
    if value_range is None or by_band(value_range) or value_range[1] <= 1 or images.min() != 0 or images.max() != 1:
        return
    if images.dtype.kind in "ui" or not (images % 1).any():
        raise ValueError(
            f"`{name}` must contain pixels from {value_range[0]:g} to {value_range[1]:g}. Received: zeros and ones "
            f"alone, which would all be nearly black; multiply by {value_range[1]:g}"
        )


def warn_unscaled(model, images, name="images"):
    """Warns of numbers such as 0 to 255 for a model whose first weights get them as they are."""
    high = float(np.abs(images).max()) if np.size(images) else 0
    if high > LARGE and rescales_nothing(model):
        warn(
            f"{model.name!r} rescales no pixels, and trains badly on those that are far from 0 to 1: put "
            f"keras_vit.Rescale() first, or divide `{name}` by 255. Received: values up to {high:g}"
        )


def _first(model):
    start = next((x for x in getattr(model, "inputs", None) or () if len(x.shape) > 3), None)
    if start is None or not outputs_of(model):
        return None
    shape = [1, *(ANY if side is None else side for side in start.shape[1:])]
    dtype = start.dtype if "int" in start.dtype else "float32"
    pixels = [np.broadcast_to(np.array(pixel, dtype), shape) for pixel in (0, 1, 2)]  # in no memory
    try:
        layer, values, normalized = _reached(model, start, pixels)
        zero, one, two = map(_corner, values)
    except Exception:  # a layer of the user's own may raise anything
        return None
    scale, offset = float(np.median(one - zero)), float(np.median(zero))
    linear = np.allclose(two - one, one - zero, rtol=1e-3, atol=1e-6)
    return First(layer, scale, offset, normalized) if linear and scale > 0 else None


def _corner(value):
    """Returns a part of a tensor as float64, since of large images a part tells as much."""
    array = value if isinstance(value, np.ndarray) else keras.ops.convert_to_numpy(value)
    return np.asarray(array[(slice(2 * ANY),) * (array.ndim - 1)], "float64")


def _reached(model, start, values):
    """Follows pixels to the first layer with weights, or that rescales as ours do, also in a model inside.

    Returns:
        That layer, what it is given for each of `values`, and whether a normalization follows.
    """
    users, waiting = collections.defaultdict(list), [start]
    for node in leading_to(outputs_of(model)):
        for tensor in node.input_tensors:
            users[id(tensor)].append(node)
    for tensor in waiting:  # and what is added to them meanwhile
        for node in users[id(tensor)]:
            layer = node.operation
            if not _stops(layer):
                waiting += node.outputs
                continue
            tensors = [between(start, tensor, value) for value in values]
            if outputs_of(layer):
                place = [id(each) for each in node.input_tensors].index(id(tensor))
                return _reached(layer, layer.inputs[place], tensors)
            then = [each.operation for output in node.outputs for each in users[id(output)]]
            return layer, tensors, _any([layer, *then], NORMS)
    raise ValueError("There are no weights")


def _stops(layer):
    inside = sublayers(layer) if isinstance(layer, keras.Layer) else []
    own = [part for part in inside if part.weights and not isinstance(part, (keras.layers.Normalization, keras.Model))]
    return _any(inside, Rescale) or bool(own)


def _is_unchanged(first):
    return abs(first.scale - 1) < 1e-6 and abs(first.offset) < 1e-6


def _any(layers, kinds):
    return any(isinstance(layer, kinds) for layer in layers)


def _plain(number):
    """Returns a number without the rounding errors of float32."""
    rounded = float(f"{number:.5g}")
    return int(rounded) if rounded.is_integer() else rounded
