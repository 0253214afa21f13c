"""Pictures of bands as a model takes them: in its range, with pixels without data filled."""

import os

import numpy as np

from keras_vit.utils import bands, checks
from keras_vit.utils.value_range import by_band, ends


def of_bands(path, reading, channels, value_range):
    """Returns the pixels of a file, float32 `(height, width, channels)`, in the range of a model.

    Args:
        path: The file.
        reading: The `bands.Reading` that the model states, or `None`.
        channels: Number of bands that the model takes.
        value_range: Its range. What is outside is clipped where it has numbers for each band, else an error.

    Raises:
        ValueError: As `bands.read`, and for pixels outside the range.
    """
    bands.check_bits(path, value_range)
    pixels = clipped(bands.read(path, reading or bands.Reading(), channels), value_range)
    try:
        checks.pixels(pixels[None], value_range=value_range)
    except ValueError as error:
        raise ValueError(f"{os.fsdecode(path)!r}: {error}") from None
    return pixels


def within(image, reading, value_range):
    """Returns an array of pixels as training saw such: without data filled, and clipped to a range of bands."""
    image = np.asarray(image)
    image = image[..., None] if image.ndim == 2 else image
    unknown = bands.is_unknown(image, reading.no_data, None) if image.ndim == 3 and image.dtype.kind in "iuf" else None
    if unknown is not None and unknown.any():
        image = bands.filled(image.astype("float32"), unknown)
    return clipped(image, value_range) if image.ndim == 3 and image.dtype.kind in "iuf" else image


def clipped(pixels, value_range):
    """Returns pixels in a range that has numbers for each band; a band without data has its lowest number."""
    if not by_band(value_range):
        return pixels
    low, high = ends(value_range)
    if pixels.shape[-1] != len(low):
        return pixels
    return np.where(np.isnan(pixels), low, np.clip(pixels, low, high))
