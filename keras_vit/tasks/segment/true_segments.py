"""The true segments of an image, from its map of objects."""

from typing import NamedTuple

import numpy as np

from keras_vit.models.outputs import ignored
from keras_vit.utils import instance_maps


class Truth(NamedTuple):
    """The true segments of an image: objects, regions, and crowds.

    - `index`: int32 `(rows, columns)`, the number of each pixel's segment, from 0; -1 for none.
    - `classes`: integers `(segments,)`.
    - `crowd`: booleans `(segments,)`: whether it is a region where its class is ignored.
    """

    index: np.ndarray
    classes: np.ndarray
    crowd: np.ndarray


def true_segments(item, classes):
    """Returns the `Truth` of an image.

    Args:
        item: A map of objects, as `instance_maps.pixels` takes it.
        classes: Number of classes.

    Raises:
        ValueError: For a value of a class that is none.
    """
    values = instance_maps.pixels(item)
    low, high = int(values.min()), int(values.max())
    least, most = ignored(classes - 1), classes * instance_maps.PER_CLASS - 1
    if low < least or high > most:
        raise ValueError(
            f"A map of objects of {classes} classes must have values from {least} to {most}. Received: {low} to {high}"
        )
    present = np.flatnonzero(np.bincount((values - low).ravel())) + low
    present = present[present != instance_maps.NONE]
    index = np.full(high - low + 1, -1, "int32")
    index[present - low] = np.arange(len(present))
    crowd = present < 0
    return Truth(index[values - low], np.where(crowd, ignored(present), present // instance_maps.PER_CLASS), crowd)
