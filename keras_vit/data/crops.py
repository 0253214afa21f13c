"""From an image of any size to the model's size: a random crop for training, the whole image or its centre otherwise.

`Augment.crop` names the random crop:

- `"inception"`: a box of 5 to 100 % of the area and an aspect ratio of 3:4 to 4:3 (Szegedy et al. 2015,
  arXiv:1409.4842), as big_vision's `inception_crop`. Of a JPEG only the box is decoded;
- `"resized"`: the shorter side is resized to `crop_resize` pixels, then a box of the model's size is cut out, as in
  big_vision's `resmall_crop`;
- `"padded"`: see `augment.padded_crop`.

The first two flip too, while the pixels are few and still bytes.
"""

import tensorflow as tf

from keras_vit.data.decoding import decode

CUTS = ("inception", "resized")


def training_image(item, size, data, settings, numbers):
    """Returns one image for training, float32 of `size`, 0..255.

    Args:
        item: A scalar string, an encoded image; or a uint8 tensor `(height, width, channels)`.
        size: `(height, width, channels)`.
        data: A `keras_vit.options.Data`.
        settings: A `keras_vit.options.Augment`.
        numbers: Four numbers in [0, 1), which determine the crop and whether it is flipped.
    """
    if settings.crop == "inception":
        image = _inception_crop(item, size[2], settings.crop_area, numbers)
        return _quick_resize(_flip(image, settings, numbers), size[:2], data.antialias)
    image = decode(item, size[2])
    if settings.crop == "resized":
        image = _resize_shorter_side(image, settings.crop_resize, size, "area", data.antialias)
        room = tf.cast(tf.shape(image)[:2] - size[:2] + 1, "float32")
        top, left = tf.unstack(tf.cast(numbers[:2] * room, "int32"))
        image = _flip(image[top : top + size[0], left : left + size[1]], settings, numbers)
        return tf.ensure_shape(image, size)
    return resize(image, size[:2], antialias=data.antialias)


def evaluation_image(item, size, data):
    """Returns one image for evaluation, float32 of `size`, 0..255; arguments as in `training_image`."""
    image = decode(item, size[2])
    if data.resize is None:
        return resize(image, size[:2], data.method, data.antialias)
    image = _resize_shorter_side(image, data.resize, size, data.method, data.antialias)
    top, left = tf.unstack((tf.shape(image)[:2] - size[:2]) // 2)
    return tf.ensure_shape(image[top : top + size[0], left : left + size[1]], size)


def resize(image, size, method="bilinear", antialias=True):
    """Resizes to `(height, width)`; float32, 0..255."""
    return tf.clip_by_value(tf.image.resize(image, size, method, antialias=antialias), 0.0, 255.0)


def _quick_resize(image, size, antialias):
    """Resizes in a quarter of the time of `resize`: averages areas to shrink, and enlarges without a filter."""

    def resize_by(method):
        return tf.image.resize(image, size, method)

    if not antialias:
        return resize_by("bilinear")
    shrinks = tf.reduce_all(tf.shape(image)[:2] >= size)
    return tf.cond(shrinks, lambda: resize_by("area"), lambda: resize_by("bilinear"))


def _resize_shorter_side(image, pixels, size, method, antialias):
    """Resizes the shorter side to `pixels`; an oblong `size` then fits into the image by its own shorter side."""
    shape = tf.cast(tf.shape(image)[:2], "float32")
    wanted = tf.constant([pixels * side / min(size[:2]) for side in size[:2]], "float32")
    factor = tf.reduce_max(wanted / shape)
    return resize(image, tf.cast(tf.round(shape * factor), "int32"), method, antialias)


def _flip(image, settings, numbers):
    if not settings.flip:
        return image
    return tf.cond(numbers[3] < 0.5, lambda: tf.reverse(image, [1]), lambda: image)


def _inception_crop(item, channels, area, numbers):
    """Returns the pixels of a random box. Of a JPEG, only the box is decoded."""
    seed = tf.cast(numbers[:2] * 2**24, "int32")

    def random_box(shape):
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

    def decode_then_crop():
        image = decode(item, channels)
        start, extent = random_box(tf.shape(image))
        return image[start[0] : start[0] + extent[0], start[1] : start[1] + extent[1]]

    def decode_box_of_jpeg():
        start, extent = random_box(tf.image.extract_jpeg_shape(item))
        image = tf.image.decode_and_crop_jpeg(item, tf.concat([start, extent], 0), channels=3)
        return tf.image.rgb_to_grayscale(image) if channels == 1 else image

    if item.dtype == tf.string:
        image = tf.cond(tf.io.is_jpeg(item), decode_box_of_jpeg, decode_then_crop)
    else:
        image = decode_then_crop()
    image.set_shape((None, None, channels))
    return image
