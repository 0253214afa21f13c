"""Maps of depth in tf.data, and whether their files can be used."""

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_vit.data.inspection import DIGEST, digest_of
from keras_vit.data.known_files import KnownFiles
from keras_vit.utils.depth_maps import TYPES, depth_file, depth_pixels

RULES = 1  # raise it when a file of the same bytes may be judged otherwise, or a field means something else
FIELDS = (("digest", "u1", (DIGEST,)), ("shape", "u4", (2,)))


class Depth(NamedTuple):
    """The result of inspecting a file of depth."""

    fault: str | None  # why it cannot be used
    digest: bytes = b""  # hash of its bytes
    size: tuple[int, int] = (0, 0)  # width, height
    what = "its depth"


def inspect_all(paths):
    """Decodes files of depth, unless that was done before and they are the same; returns the `Depth` of each."""
    records, faults = _known().look_up(list(map(str, paths)), "checking depth")
    return [Depth(faults[i]) if i in faults else _depth(record) for i, record in enumerate(records)]


@functools.cache
def _known():
    return KnownFiles(f"depths {RULES}", FIELDS, lambda paths: list(map(_inspect, paths)))


def _depth(record):
    return Depth(None, record["digest"].tobytes(), tuple(record["shape"].tolist()))


def _inspect(path):
    """Returns a tuple of `FIELDS`, or why a file cannot be used."""
    try:
        data = depth_file(path)
        size = depth_pixels(data).shape[::-1]
    except Exception as error:  # any error of the decoder is a fault of this file
        return str(error).removeprefix(f"{path!r} ").removesuffix(".")
    return digest_of(data), size


def decode(item, shape):
    """Returns the depth of each pixel, float32 `(rows, columns, 1)`, 0 in holes.

    Args:
        item: A scalar string, the bytes of a file that `inspect_all` found no fault in; or float32 pixels.
        shape: `(rows, columns)`, of its image.
    """
    if item.dtype == tf.string:
        kinds = [functools.partial(_numbers, item, shape, kind) for kind in TYPES]
        header = tf.strings.substr(item, 10, 40)  # of a `.npy` file: the beginning of a dictionary, as text
        which = [tf.strings.regex_full_match(header, f".*'descr': '{kind}'.*") for kind in TYPES]
        pairs = list(zip(which, kinds))
        item = tf.case(pairs, default=lambda: tf.cast(tf.io.decode_png(item, 1, "uint16"), "float32"))
    item = tf.ensure_shape(item, (None, None, 1))
    text = "A depth map must have the size of its image."
    with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(item)[:2], shape, text)]):
        return tf.where(tf.math.is_nan(item), 0.0, item)


def inverse(depth):
    """Returns inverse depth, 0 in holes."""
    return tf.math.divide_no_nan(1.0, depth)


def _numbers(item, shape, kind):
    """Returns the numbers at the end of a `.npy` file."""
    dtype = np.dtype(kind)
    length = tf.reduce_prod(shape) * dtype.itemsize
    data = tf.strings.substr(item, tf.strings.length(item) - length, length)
    return tf.reshape(tf.cast(tf.io.decode_raw(data, dtype.name), "float32"), tf.concat([shape, [1]], 0))
