"""From an image of any size, encoded or not, to the model's size: for training by a random crop, for evaluation whole.

`Augment.crop` names the random crop:

- `"inception"`: a box of 5 to 100 % of the area and a ratio of 3:4 to 4:3 (Szegedy et al. 2015, arXiv:1409.4842), of
  which alone a JPEG is decoded; big_vision's `inception_crop`;
- `"resized"`: the shorter side brought to `crop_resize` pixels, then a box of the model's size; big_vision's
  `resmall_crop`;
- `"padded"`: see `augment.padded_crop`.

The first two flip too, where pixels are few and still bytes.
"""

import tensorflow as tf

CUTS = ("inception", "resized")


def training_image(item, size, data, settings, numbers):
    """Returns one image for training, float32 of `size`, 0..255.

    Args:
        item: A scalar string, an encoded image; or a uint8 tensor `(height, width, channels)`.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`.
        settings: A `keras_vit.config.Augment`.
        numbers: Four numbers in [0, 1), from which the crop is drawn, and whether it is flipped.
    """
    if settings.crop == "inception":
        image = _inception(item, size[2], settings.crop_area, numbers)
        return _quick_resize(_flip(image, settings, numbers), size[:2], data.antialias)
    image = decode(item, size[2])
    if settings.crop == "resized":
        image = _shorter_side(image, settings.crop_resize, size, "area", data.antialias)
        room = tf.cast(tf.shape(image)[:2] - size[:2] + 1, "float32")
        top, left = tf.unstack(tf.cast(numbers[:2] * room, "int32"))
        image = _flip(image[top : top + size[0], left : left + size[1]], settings, numbers)
        return tf.ensure_shape(image, size)
    return resize(image, size[:2], antialias=data.antialias)


def evaluation_image(item, size, data):
    """Returns one image as evaluation sees it, float32 of `size`, 0..255; arguments as in `training_image`."""
    image = decode(item, size[2])
    if data.resize is None:
        return resize(image, size[:2], data.method, data.antialias)
    image = _shorter_side(image, data.resize, size, data.method, data.antialias)
    top, left = tf.unstack((tf.shape(image)[:2] - size[:2]) // 2)
    return tf.ensure_shape(image[top : top + size[0], left : left + size[1]], size)


def decode(item, channels):
    """Decodes a JPEG, PNG, BMP, GIF (first frame) or WebP to uint8 `(height, width, channels)`.

    Palettes, CMYK, alpha (dropped) and 16 bits (the upper eight) are brought to plain pixels. A rotation noted in EXIF
    is not applied. Pixels are returned as they are. `keras_vit.images` does the same without TensorFlow.
    """
    if item.dtype != tf.string:
        return item
    head = tf.strings.substr(tf.strings.join([tf.strings.substr(item, 0, 32), b"\0" * 32]), 0, 32)
    is_webp = (tf.strings.substr(head, 0, 4) == b"RIFF") & (tf.strings.substr(head, 8, 4) == b"WEBP")
    image = tf.cond(is_webp, lambda: _decode_webp(item, head), lambda: _decode_image(item, 3))
    image.set_shape((None, None, 3))
    return tf.image.rgb_to_grayscale(image) if channels == 1 else image


def _decode_image(item, channels):
    return tf.io.decode_image(item, channels=channels, expand_animations=False)


def _decode_webp(item, head):
    """Decodes a WebP, of which TensorFlow wants to be told whether it has alpha, and animations only if they have."""
    flags, kind = tf.cast(tf.io.decode_raw(head, "uint8"), "int32"), tf.strings.substr(head, 12, 4)
    extended, lossless = kind == b"VP8X", kind == b"VP8L"
    alpha = (extended & (flags[20] & 0x10 > 0)) | (lossless & (flags[24] & 0x10 > 0))

    def animation():
        flag = tf.gather([bytes([number]) for number in range(256)], flags[20] | 0x10)
        rest = tf.strings.substr(item, 21, tf.strings.length(item) - 21)
        return _decode_image(tf.strings.join([tf.strings.substr(item, 0, 20), flag, rest]), 4)[..., :3]

    def still():
        return tf.cond(alpha, lambda: _decode_image(item, 4)[..., :3], lambda: _decode_image(item, 3))

    return tf.cond(extended & (flags[20] & 2 > 0), animation, still)


def resize(image, size, method="bilinear", antialias=True):
    """Resizes to `(height, width)`; float32, 0..255."""
    return tf.clip_by_value(tf.image.resize(image, size, method, antialias=antialias), 0.0, 255.0)


def _quick_resize(image, size, antialias):
    """Resizes in a quarter of the time of `resize`: shrinks by averaging areas, and enlarges without a filter."""
    plain = lambda method: tf.image.resize(image, size, method)  # noqa: E731
    if not antialias:
        return plain("bilinear")
    return tf.cond(tf.reduce_all(tf.shape(image)[:2] >= size), lambda: plain("area"), lambda: plain("bilinear"))


def _flip(image, settings, numbers):
    if not settings.flip:
        return image
    return tf.cond(numbers[3] < 0.5, lambda: tf.reverse(image, [1]), lambda: image)


def reason(error):
    """Returns the first line of a TensorFlow error, without its trail."""
    return str(error).split("} ")[-1].split(" [Op:")[0].strip().splitlines()[0]


def _inception(item, channels, area, numbers):
    """Returns the pixels of a random box; what lies outside it in a JPEG is not decoded."""
    seed = tf.cast(numbers[:2] * 2**24, "int32")

    def box(shape):
        start, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
            shape,
            tf.zeros((0, 0, 4)),
            seed,
            min_object_covered=0.0,
            aspect_ratio_range=(0.75, 1.33),
            area_range=(area, 1.0),
            use_image_if_no_bounding_boxes=True,
        )
        return start[:2], extent[:2]

    def whole():
        image = decode(item, channels)
        start, extent = box(tf.shape(image))
        return image[start[0] : start[0] + extent[0], start[1] : start[1] + extent[1]]

    def part():
        start, extent = box(tf.image.extract_jpeg_shape(item))
        image = tf.image.decode_and_crop_jpeg(item, tf.concat([start, extent], 0), channels=3)
        return tf.image.rgb_to_grayscale(image) if channels == 1 else image

    image = tf.cond(tf.io.is_jpeg(item), part, whole) if item.dtype == tf.string else whole()
    image.set_shape((None, None, channels))
    return image


def _shorter_side(image, pixels, size, method, antialias):
    """Resizes so that the shorter side has so many pixels; for an oblong `size`, that size's shorter side."""
    shape = tf.cast(tf.shape(image)[:2], "float32")
    wanted = tf.constant([pixels * side / min(size[:2]) for side in size[:2]], "float32")
    factor = tf.reduce_max(wanted / shape)
    return resize(image, tf.cast(tf.round(shape * factor), "int32"), method, antialias)
