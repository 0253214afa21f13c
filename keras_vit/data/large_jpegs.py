"""Pictures that are too large to be decoded whole: which are no fault, and windows of a JPEG while it is decoded."""

import functools
import math

import numpy as np
import tensorflow as tf

from keras_vit.data.digests import digest_of
from keras_vit.data.known_files import KnownFiles
from keras_vit.data.readers import decoding
from keras_vit.utils import images

RULES = 1  # raise it when a file of the same bytes may be judged otherwise, or a field means something else
FAULT = images.TOO_MANY.format(images.MOST_PIXELS // 10**6)
MARGIN = 16  # pixels around a window: a block of its colors


def refused(checked):
    """Returns an `inspection.Checked` in which files of bands that are too large to be decoded whole are a fault."""
    large = np.flatnonzero(checked.records["size"].prod(axis=1, dtype="int64") > images.MOST_PIXELS)
    return type(checked)(checked.records, {**dict.fromkeys(large.tolist(), FAULT), **checked.faults})


def accepted(paths, checked, fields):
    """Returns an `inspection.Checked` in which JPEGs are no fault only because of their size; others are as they are.

    Args:
        paths: The files.
        checked: Their `Checked`.
        fields: `inspection.FIELDS`.
    """
    places = [place for place, why in checked.faults.items() if why == FAULT]
    if not places:
        return checked
    found, bad = _known(fields).look_up([paths[place] for place in places], "checking large images")
    records, faults = checked.records.copy(), dict(checked.faults)
    for i, place in enumerate(places):
        if i in bad:
            faults[place] = bad[i]
        else:
            del faults[place]
            records[place] = found[i]
    return type(checked)(records, faults)


def is_jpeg(head):
    """Returns whether a file is a JPEG by its first bytes."""
    return head[:3] == b"\xff\xd8\xff"


def window_of(data, size, channels, top, left, height, width):
    """Returns a window of a JPEG, uint8 `(height, width, channels)`, equal to that of the whole.

    It is decoded down to the window, and only that is kept. The decoder interpolates colors from their neighbors, which
    it does not know at the edge of what it decodes: a margin is decoded too, and cut off.

    Args:
        data: Its bytes.
        size: `(height, width)` as it is seen.
        channels: 1 or 3.
        top, left, height, width: The window.
    """
    start = max(top - MARGIN, 0), max(left - MARGIN, 0)
    end = min(top + height + MARGIN, size[0]), min(left + width + MARGIN, size[1])
    with tf.device("CPU"):
        _, box = decoding.opened(tf.constant(data), channels, tf.constant(images.orientation(data)))
        pixels = box(tf.constant(start), tf.constant(end) - tf.constant(start)).numpy()
    return pixels[top - start[0] :, left - start[1] :][:height, :width]


@functools.cache
def _known(fields):
    return KnownFiles(f"large images {RULES}", fields, lambda paths: [*map(_inspect, paths)])


def _inspect(path):
    """Returns the fields of a JPEG, or why it cannot be read: its last pixels are decoded, behind all others."""
    try:
        data = images.encoded(path, math.inf)
        if not is_jpeg(data):
            return f"{FAULT}, and its format has no windows: save it as a tiled TIFF"
        number, (height, width) = images.orientation(data), images.image_size(data)
        stored = (width, height) if number > 4 else (height, width)
        with tf.device("CPU"):
            corner = [stored[0] - 1, stored[1] - 1, 1, 1]
            tf.image.decode_and_crop_jpeg(data, corner, channels=3, dct_method=decoding.EXACT)
    except (ValueError, OSError) as error:
        return str(error).removeprefix(f"{path!r} ").removesuffix(".")
    except Exception as error:  # any error of the decoder is a fault of this file
        return decoding.error_reason(error)
    return digest_of(data), (width, height), number, -1
