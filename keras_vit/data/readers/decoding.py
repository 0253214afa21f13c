"""Decoding of image files inside tf.data; `keras_vit.utils.images` finds the same pixels without TensorFlow."""

import tensorflow as tf

from keras_vit.data.orientation import box_before, orientations_in_graph, turn, turn_shape

EXACT = "INTEGER_ACCURATE"  # the cosine transform of Pillow and browsers; TensorFlow's default is a quicker one


def decode(item, channels, orientation=None):
    """Decodes a JPEG, PNG, BMP, GIF (first frame) or WebP (first frame), and turns it upright.

    Palettes and CMYK become colours. Alpha is dropped. Of 16 bits the upper eight are kept.

    Args:
        item: A scalar string, an encoded image; or pixels, which are returned as they are.
        channels: 1 (grey) or 3 (colour).
        orientation: That of the file, from 1 to 8, if it is known; it is found for many files at once in less time.

    Returns:
        uint8 tensor, `(height, width, channels)`.
    """
    if item.dtype != tf.string:
        return item
    head = tf.strings.substr(tf.strings.join([tf.strings.substr(item, 0, 32), b"\0" * 32]), 0, 32)
    is_webp = (tf.strings.substr(head, 0, 4) == b"RIFF") & (tf.strings.substr(head, 8, 4) == b"WEBP")
    others = lambda: tf.cond(is_webp, lambda: _decode_webp(item, head), lambda: _decode_first_frame(item, 3))  # noqa: E731
    image = tf.cond(tf.io.is_jpeg(item), lambda: tf.io.decode_jpeg(item, channels=3, dct_method=EXACT), others)
    image = turn(image, _orientation(item) if orientation is None else orientation)
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
    is_jpeg, orientation = tf.io.is_jpeg(item), _orientation(item) if orientation is None else orientation
    pixels = tf.cond(is_jpeg, lambda: tf.zeros((0, 0, channels), "uint8"), lambda: decode(item, channels, orientation))
    of_jpeg = lambda: turn_shape(tf.image.extract_jpeg_shape(item)[:2], orientation)  # noqa: E731
    shape = tf.cond(is_jpeg, of_jpeg, lambda: tf.shape(pixels)[:2])
    return shape, box


def error_reason(error):
    """Returns the first line of a TensorFlow error, without the names of operations."""
    return str(error).split("} ")[-1].split(" [Op:")[0].strip().splitlines()[0]


def _orientation(item):
    return orientations_in_graph(item[None])[0]


def _decode_first_frame(item, channels):
    return tf.io.decode_image(item, channels=channels, expand_animations=False)


def _decode_webp(item, head):
    """Decodes a WebP. TensorFlow needs four channels for alpha, and reads only animations marked as having alpha."""
    flags, kind = tf.cast(tf.io.decode_raw(head, "uint8"), "int32"), tf.strings.substr(head, 12, 4)
    extended, lossless = kind == b"VP8X", kind == b"VP8L"
    alpha = (extended & (flags[20] & 0x10 > 0)) | (lossless & (flags[24] & 0x10 > 0))

    def decode_animation():
        flag = tf.gather([bytes([number]) for number in range(256)], flags[20] | 0x10)
        rest = tf.strings.substr(item, 21, tf.strings.length(item) - 21)
        return _decode_first_frame(tf.strings.join([tf.strings.substr(item, 0, 20), flag, rest]), 4)[..., :3]

    def decode_still():
        return tf.cond(alpha, lambda: _decode_first_frame(item, 4)[..., :3], lambda: _decode_first_frame(item, 3))

    return tf.cond(extended & (flags[20] & 2 > 0), decode_animation, decode_still)
