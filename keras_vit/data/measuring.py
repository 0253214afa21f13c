"""The range of the pixels of training images, their mean and their deviation, a number for each band."""

import os

import numpy as np

from keras_vit.data.deep_source import WORDS
from keras_vit.utils import bands, checks
from keras_vit.utils.progress import passing
from keras_vit.utils.value_range import ends, of_pairs, plain
from keras_vit.utils.warned import warn

PERCENT = (0.1, 99.9)  # of "percentiles"
MOST = 2**22  # pixels that percentiles, mean and deviation are taken of: a regular grid of each image's
AT_ONCE = 2**24  # values that are read together
FEW, MOST_LOST, LEAST_FILLED = 16, 0.05, 1 / 16  # images, shares: of a stated range there is a warning
DIGITS = 6  # that are kept of percentiles, means and deviations, so that they are the same on every machine


def settled(recipe, source):
    """Returns the options, by dotted names, that follow from the training images where a recipe leaves them to these.

    Args:
        recipe: A `Recipe`; its `data.value_range`, `model.mean` and `model.std` are read.
        source: The training split, a `Source`.

    Raises:
        ValueError: For `"data"` in the model of images that are read as bytes.
    """
    data, asked = recipe.data, [name for name in ("mean", "std") if recipe.model.get(name) == "data"]
    if getattr(source, "bands", None) is None:
        if asked:
            raise ValueError(
                f"model.{asked[0]}='data' is for pictures with data.value_range. Received: data.value_range=None"
            )
        return {}
    pairs, sample = data.value_range, None
    if data.value_range in WORDS or asked:
        lows, highs, sample = _passed(source, data)
        pairs = _measured(data.value_range, lows, highs, sample)
    if pairs is None:  # bytes
        return {f"model.{name}": _share(sample, (0, 255), name) for name in asked}
    pairs = tuple(pairs for _ in range(source.bands)) if np.ndim(pairs) == 1 else pairs
    repeated = 3 if (source.bands, recipe.model.get("channels", 3)) == (1, 3) else 1  # as `bands.read` does
    if len(pairs) not in (source.bands, source.bands * repeated):
        raise ValueError(
            f"data.value_range must be a pair, or one for each of {source.bands} bands. Received: {checks.shown(pairs)}"
        )
    if sample is None:
        _warn_of_range(pairs[: source.bands], source.take(slice(FEW)), data)
    pairs = tuple(pairs) * (repeated if len(pairs) == source.bands else 1)
    sample = None if sample is None else sample.repeat(repeated, axis=1)
    follows = {"data.value_range": pairs, "model.value_range": [list(pair) for pair in pairs]}
    return follows | {f"model.{name}": _share(sample, of_pairs(pairs), name) for name in asked}


def tell(recipe, verbose=True):
    """Prints the range of each band of a settled recipe, and what its first weights were made for; not of bytes."""
    pairs = recipe.data.value_range
    if not verbose or pairs is None:
        return
    names = recipe.data.bands or range(1, len(pairs) + 1)
    print("bands: " + ", ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in zip(names, pairs)))
    if recipe.model.get("weights") and len(pairs) != 3:
        print(f"First weights of one or three channels are repeated for {len(pairs)} bands, and divided as often.")


def _passed(source, data, every=True):
    """Returns the lowest and the highest number of each band, and a sample of pixels, `(pixels, bands)`.

    Without `every` only some rows of large pictures are read.
    """
    reading = bands.reading_of(data)
    each = max(MOST // len(source.images), 1)
    lows, highs, sample = np.full(source.bands, np.inf), np.full(source.bands, -np.inf), []
    parts = (part for image in source.images for part in _parts(image, reading, every))
    for pixels, area in passing(parts, "measuring bands: {n:,}", 2.0, every=10):
        pixels = pixels.reshape(-1, source.bands)
        known = pixels[~np.isnan(pixels).any(-1)]
        if len(known):
            lows, highs = np.minimum(lows, known.min(0)), np.maximum(highs, known.max(0))
            sample.append(known[:: max(area // each, 1)])
    if not sample:
        raise ValueError("The training images must have a pixel with data in every band. Received: none")
    return lows, highs, np.concatenate(sample)


def _parts(image, reading, every):
    """Yields some rows of an image at a time, float32 `(rows, width, bands)`, and how many pixels all of it has."""
    if isinstance(image, np.ndarray):
        yield image.astype("float32"), image.shape[0] * image.shape[1]
        return
    raster, pixels_of = bands.by_windows(os.fspath(image), reading)
    height, width, count = raster.shape
    step = max(AT_ONCE // (width * count) // raster.block[0], 1) * raster.block[0]
    tops = range(0, height, step)
    for top in tops if every else tops[len(tops) // 2 :][:1]:
        yield pixels_of(raster.read(top, 0, min(step, height - top), width)), height * width


def _warn_of_range(pairs, source, data):
    """Warns of a stated range that clips many numbers of some images, or of which they fill little."""
    low, high = ends(of_pairs(pairs))
    lows, highs, sample = _passed(source, data, every=False)
    outside = ((sample < low) | (sample > high)).mean(0)
    filled = (np.minimum(highs, high) - np.maximum(lows, low)) / (high - low)
    for i, (lost, share) in enumerate(zip(outside, filled), 1):
        if lost > MOST_LOST or share < LEAST_FILLED:
            warn(
                f"In the first {len(source)} training images, band {i} has numbers from {lows[i - 1]:g} to "
                f"{highs[i - 1]:g}, of which {lost:.0%} are outside of data.value_range, {pairs[i - 1]}, and clipped."
            )


def _measured(value_range, lows, highs, sample):
    if value_range not in WORDS:
        return value_range
    if value_range == "percentiles":
        lows, highs = np.vectorize(_short)(np.percentile(sample.astype("float64"), PERCENT, axis=0))
    pairs = tuple((plain(low), plain(high)) for low, high in zip(lows, highs))
    flat = [i + 1 for i, (low, high) in enumerate(pairs) if low >= high]
    if flat:
        raise ValueError(
            f"A band of the training images must have different numbers. Received: {pairs[flat[0] - 1][0]:g} alone in "
            f"band {flat[0]}"
        )
    return pairs


def _share(sample, value_range, name):
    """Returns mean or deviation of each band on the scale of 0 to 1."""
    low, high = ends(value_range)
    shares = (np.clip(sample, low, high).astype("float64") - low) / (high - low)
    values = [_short(number) for number in getattr(shares, name)(axis=0)]
    flat = [i + 1 for i, value in enumerate(values) if name == "std" and value <= 0]
    if flat:
        raise ValueError(f"A band must have different numbers in its range. Received: one alone in band {flat[0]}")
    return values


def _short(number):
    return float(f"{number:.{DIGITS}g}")
