"""Decoding of image files inside tf.data: JPEG and PNG by TensorFlow, which is quick, and others by Pillow.

`keras_vit.utils.images` finds the same pixels without TensorFlow.
"""

import tensorflow as tf

from keras_vit.data.orientation import box_before, orientations, turn, turn_shape
from keras_vit.data.packing import is_packed, unpacked
from keras_vit.utils.images import decoded

EXACT = "INTEGER_ACCURATE"  # the cosine transform of Pillow and browsers; TensorFlow's default is a quicker one


def decode(item, channels, orientation=None):
    """Decodes an image file, of an animation the first frame, and turns it upright.

    Palettes and CMYK become colors. Alpha is dropped. Of 16 bits the upper eight are kept.

    Args:
        item: A scalar string, an encoded image; or pixels, which are returned as they are. Of a clip, see `packing`.
        channels: 1 (gray) or 3 (color); of a clip, those of all its frames.
        orientation: That of the file, from 1 to 8, if it is known; it is found for many files at once in less time.

    Returns:
        uint8 tensor, `(height, width, channels)`.
    """
    if item.dtype != tf.string:
        return item

    def read(items):
        return (unpacked if is_packed(items[0]) else decoded)(items[0], channels)

    def by_pillow():
        pixels = tf.numpy_function(read, [item[None]], "uint8", stateful=False)
        return tf.ensure_shape(pixels, (None, None, channels))

    if channels not in (1, 3):
        return by_pillow()
    return tf.cond(is_plain(item), lambda: decode_in_graph(item, channels, _known(item, orientation)), by_pillow)


def is_plain(item):
    """Returns whether an encoded image is a JPEG or PNG, by its first bytes."""
    return tf.io.is_jpeg(item) | (tf.strings.substr(item, 0, 4) == b"\x89PNG")


def decode_in_graph(item, channels, orientation):
    """Does the same for a JPEG or PNG without Python, also in an exported model."""
    image = tf.cond(
        tf.io.is_jpeg(item),
        lambda: tf.io.decode_jpeg(item, channels=3, dct_method=EXACT),
        lambda: tf.io.decode_png(item, channels=3),
    )
    image = turn(image, orientation)
    image.set_shape((None, None, 3))
    return tf.image.rgb_to_grayscale(image) if channels == 1 else image


def opened(item, channels, orientation=None):
    """Returns an image's `(height, width)`, and a function from a box's start and extent to its pixels.

    Of a JPEG only the header is read at first, and only the box is decoded. Arguments are those of `decode`.
    """

    def box_of(pixels, start, extent):
        return pixels[start[0] : start[0] + extent[0], start[1] : start[1] + extent[1]]

    def box_of_jpeg(start, extent):
        stored = tf.concat(box_before(shape, start, extent, orientation), 0)
        image = turn(tf.image.decode_and_crop_jpeg(item, stored, channels=3, dct_method=EXACT), orientation)
        return tf.image.rgb_to_grayscale(image) if channels == 1 else image

    def box(start, extent):
        image = tf.cond(is_jpeg, lambda: box_of_jpeg(start, extent), lambda: box_of(pixels, start, extent))
        image.set_shape((None, None, channels))
        return image

    if item.dtype != tf.string:
        return tf.shape(item)[:2], lambda start, extent: box_of(item, start, extent)
    is_jpeg, orientation = tf.io.is_jpeg(item), _known(item, orientation)
    pixels = tf.cond(is_jpeg, lambda: tf.zeros((0, 0, channels), "uint8"), lambda: decode(item, channels, orientation))
    shape = tf.cond(
        is_jpeg,
        lambda: turn_shape(tf.image.extract_jpeg_shape(item)[:2], orientation),
        lambda: tf.shape(pixels)[:2],
    )
    return shape, box


def error_reason(error):
    """Returns the first line of a decoder's error, without the names of TensorFlow's operations."""
    return (str(error).split("} ")[-1].split(" [Op:")[0].strip().splitlines() or [type(error).__name__])[0]


def _known(item, orientation):
    return orientations(item[None])[0] if orientation is None else orientation
