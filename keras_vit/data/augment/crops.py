"""From an image of any size to the model's size: a random crop for training, the whole image or its center otherwise.

What is seen is drawn first (`cuts`) and cut out then, so that a mask can be cut where its image was.
"""

import tensorflow as tf

from keras_vit.data.augment.cuts import BOXES, center_cut, draw_cut, padded_cut
from keras_vit.data.readers.decoding import decode, opened
from keras_vit.data.targets import KINDS
from keras_vit.preparing.padded import padded


def training_example(items, size, data, settings, numbers, orientation=None):
    """Cuts one image for training, and what else has a place in it in the same place.

    Args:
        items: Dictionary of `"images"`, a scalar string (an encoded image) or a uint8 tensor `(height, width,
            channels)`; and items of `targets.KINDS` that have a `cut`.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`.
        settings: A `keras_vit.config.Augment`.
        numbers: Four numbers in [0, 1), which determine the crop and whether it is flipped.
        orientation: As in `decode`.

    Returns:
        Dictionary like `items`; the image is float32 of `size`, 0..255.
    """
    item, channels = items["images"], size[2]
    if settings.crop in BOXES:
        shape, box = opened(item, channels, orientation)
        cut = draw_cut(shape, size, settings, numbers)
        image = _quick_resize(_flip(box(cut.start, cut.extent), cut.flip), size[:2], data.antialias)
    elif data.resize == "pad":
        image = decode(item, channels, orientation)
        cut = padded_cut(tf.shape(image)[:2], size, flip=numbers[3] < 0.5 if settings.flip else None)
        image = make(_flip(image, cut.flip), cut, size, "bilinear", data.antialias)
    else:
        image = decode(item, channels, orientation)
        cut = draw_cut(tf.shape(image)[:2], size, settings, numbers)
        image = make(image, cut, size, "bilinear", data.antialias)
    return _with_image(items, image, cut, size)


def evaluation_image(item, size, data, orientation=None):
    """Returns one image for evaluation; item and result as in `training_example`."""
    return evaluation_example({"images": item}, size, data, orientation)["images"]


def evaluation_example(items, size, data, orientation=None):
    """Cuts one image for evaluation, and what else has a place in it, like `training_example`."""
    image = decode(items["images"], size[2], orientation)
    cut = center_cut(tf.shape(image)[:2], size, data)
    return _with_image(items, make(image, cut, size, data.method, data.antialias), cut, size)


def resize(image, size, method="bilinear", antialias=True):
    """Resizes to `(height, width)`; float32, 0..255."""
    return tf.clip_by_value(tf.image.resize(image, size, method, antialias=antialias), 0.0, 255.0)


def _with_image(items, image, cut, size):
    return {name: image if name == "images" else KINDS[name].cut(item, cut, size[:2]) for name, item in items.items()}


def make(image, cut, size, method, antialias):
    """Resizes the box of a `Cut` to its grid, and cuts its window out; what is padded is filtered as OWLv2's."""
    if cut.padded:
        image = tf.numpy_function(lambda pixels: padded(pixels, size[:2]), [image], "float32", stateful=False)
        return tf.ensure_shape(image, size)
    box = image[cut.start[0] : cut.start[0] + cut.extent[0], cut.start[1] : cut.start[1] + cut.extent[1]]
    image = resize(box, cut.grid, method, antialias)
    if cut.window is not None:
        top, left = cut.window
        image = image[top : top + size[0], left : left + size[1]]
    return tf.ensure_shape(image, size)


def _quick_resize(image, size, antialias):
    """Resizes in a quarter of the time of `resize`: averages areas to shrink, and enlarges without a filter."""

    def resize_by(method):
        return tf.image.resize(image, size, method)

    if not antialias:
        return resize_by("bilinear")
    shrinks = tf.reduce_all(tf.shape(image)[:2] >= size)
    return tf.cond(shrinks, lambda: resize_by("area"), lambda: resize_by("bilinear"))


def _flip(image, flip):
    return image if flip is None else tf.cond(flip, lambda: tf.reverse(image, [1]), lambda: image)
