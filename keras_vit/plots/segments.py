"""Pictures of segments: objects and regions, each in the color of its class."""

import numpy as np

from keras_vit.plots.boxes import enlarged
from keras_vit.plots.masks import nearest, overlay

LINES = 240  # of a picture's shorter side by the width of a line


def segmented(image, ids, segments, class_names):
    """Returns an image with its segments painted, uint8 `(rows, columns, 3)`, and lines between those of one class.

    It is enlarged by a whole number if it is small, so that lines hide little.

    Args:
        image: Array, `(height, width, channels)`, 0..255.
        ids: Map of segments, integers `(rows, columns)`, -1 for none; one of another size is resized by nearest
            neighbor.
        segments: List of dictionaries: `"id"`, the segment's number in the map, and `"class"`, the index of its class.
            Numbers of the map that are of none of them stay unpainted.
        class_names: Names of the classes. A class called `"background"` stays unpainted.

    Raises:
        ValueError: If the map is not of integers, or a class has no name.
    """
    from scipy.ndimage import maximum_filter

    ids = np.asarray(ids)
    if ids.ndim != 2 or ids.dtype.kind not in "ui":
        raise ValueError(f"`ids` must be integers, (rows, columns). Received: shape={ids.shape}, dtype={ids.dtype}")
    wrong = [each["class"] for each in segments if not 0 <= each["class"] < len(class_names)]
    if wrong:
        raise ValueError(f"Segments must have classes from 0 to {len(class_names) - 1}. Received: {wrong[0]}")
    image, _ = enlarged(np.asarray(image))
    ids = nearest(ids.astype("int64"), image.shape[:2])
    table = np.full(max([-1, ids.max(), *(each["id"] for each in segments)]) + 2, -1)
    for each in segments:
        table[each["id"]] = each["class"]
    classes = table[np.maximum(ids, -1)]  # the last row is of none
    drawn = overlay(image, classes, class_names)
    lines, width = between(ids, classes), max(min(ids.shape) // LINES, 1)
    for color, wide in ((255, 3 * width), (0, width)):  # black on white: one of them is seen on any image
        drawn[maximum_filter(lines, wide) & (classes >= 0)] = color
    return drawn


def between(ids, classes):
    """Returns which pixels are next to another segment of their class, booleans, one pixel wide.

    Args:
        ids: Numbers of segments, `(rows, columns)`.
        classes: Class of each pixel's segment, of the same shape, below 0 for none.
    """
    lines = np.zeros(ids.shape, bool)
    for axis in (0, 1):
        before, after = ((slice(None),) * axis + (part,) for part in (slice(None, -1), slice(1, None)))
        alike = (classes[before] == classes[after]) & (classes[after] >= 0)
        lines[after] |= alike & (ids[before] != ids[after])
    return lines
