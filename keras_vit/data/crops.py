"""From an image of any size to the model's size: a random crop for training, the whole image or its centre otherwise.

`Augment.crop` names the random crop:

- `"inception"`: a box of 5 to 100 % of the area and an aspect ratio of 3:4 to 4:3 (Szegedy et al. 2015,
  arXiv:1409.4842), as big_vision's `inception_crop`. Of a JPEG only the box is decoded;
- `"resized"`: the shorter side is resized to `crop_resize` pixels, then a box of the model's size is cut out, as in
  big_vision's `resmall_crop`;
- `"padded"`: a box of the model's size is cut out of the image with a black border, in `augment`.

The first two flip too, while the pixels are few and still bytes.

A cut is drawn first, then made, so that a mask can be cut where its image was.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_vit.data.decoding import decode, opened
from keras_vit.data.targets import KINDS

CUTS = ("inception", "resized")


class Cut(NamedTuple):
    """Which part of an image is seen: a box, resized to a grid, of which a window of the model's size is cut out."""

    shape: Any  # (height, width) of the image, int32
    start: Any  # (top, left) of the box
    extent: Any  # (height, width) of the box
    grid: Any  # (height, width) to which the box is resized
    window: Any = None  # (top, left) in the grid; None: all of it is seen
    flip: Any = None  # whether the result is mirrored, a bool tensor; None: no


def training_example(items, size, data, settings, numbers):
    """Cuts one image for training, and what else has a place in it in the same place.

    Args:
        items: Dictionary of `"images"`, a scalar string (an encoded image) or a uint8 tensor `(height, width,
            channels)`; and items of `targets.KINDS` that have a `cut`.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`.
        settings: A `keras_vit.config.Augment`.
        numbers: Four numbers in [0, 1), which determine the crop and whether it is flipped.

    Returns:
        Dictionary like `items`; the image is float32 of `size`, 0..255.
    """
    item, channels = items["images"], size[2]
    if settings.crop == "inception":
        shape, box = opened(item, channels)
        cut = draw_cut(shape, size, settings, numbers)
        image = _quick_resize(_flip(box(cut.start, cut.extent), cut.flip), size[:2], data.antialias)
    else:
        image = decode(item, channels)
        cut = draw_cut(tf.shape(image)[:2], size, settings, numbers)
        image = _make(image, cut, size, "area" if settings.crop == "resized" else "bilinear", data.antialias)
    return _with_image(items, image, cut, size)


def evaluation_image(item, size, data):
    """Returns one image for evaluation; item and result as in `training_example`."""
    return evaluation_example({"images": item}, size, data)["images"]


def evaluation_example(items, size, data):
    """Cuts one image for evaluation, and what else has a place in it, like `training_example`."""
    image = decode(items["images"], size[2])
    cut = centre_cut(tf.shape(image)[:2], size, data)
    return _with_image(items, _make(image, cut, size, data.method, data.antialias), cut, size)


def draw_cut(shape, size, settings, numbers):
    """Returns the `Cut` of one image for training, by its `(height, width)`."""
    if settings.crop == "inception":
        cut = Cut(shape, *_random_box(shape, settings.crop_area, numbers), size[:2])
    elif settings.crop == "resized":
        cut = _whole(shape, _grid(shape, settings.crop_resize, size))
        room = tf.cast(cut.grid - size[:2] + 1, "float32")
        cut = cut._replace(window=tf.unstack(tf.cast(numbers[:2] * room, "int32")))
    else:
        return _whole(shape, size[:2])  # flipped in `augment`
    return cut._replace(flip=numbers[3] < 0.5) if settings.flip else cut


def centre_cut(shape, size, data):
    """Returns the `Cut` of one image for evaluation: all of it, or its centre."""
    if data.resize is None:
        return _whole(shape, size[:2])
    cut = _whole(shape, _grid(shape, data.resize, size))
    return cut._replace(window=tf.unstack((cut.grid - size[:2]) // 2))


def resize(image, size, method="bilinear", antialias=True):
    """Resizes to `(height, width)`; float32, 0..255."""
    return tf.clip_by_value(tf.image.resize(image, size, method, antialias=antialias), 0.0, 255.0)


def _whole(shape, grid):
    return Cut(shape, (0, 0), shape, grid)


def _grid(shape, pixels, size):
    """Resizes the shorter side to `pixels`; an oblong `size` then fits into the image by its own shorter side."""
    shape = tf.cast(shape, "float32")
    wanted = tf.constant([pixels * side / min(size[:2]) for side in size[:2]], "float32")
    return tf.cast(tf.round(shape * tf.reduce_max(wanted / shape)), "int32")


def _with_image(items, image, cut, size):
    return {name: image if name == "images" else KINDS[name].cut(item, cut, size[:2]) for name, item in items.items()}


def _make(image, cut, size, method, antialias):
    """Resizes a whole image to the grid of a `Cut`, and cuts its window out."""
    image = resize(image, cut.grid, method, antialias)
    if cut.window is not None:
        top, left = cut.window
        image = _flip(image[top : top + size[0], left : left + size[1]], cut.flip)
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


def _random_box(shape, area, numbers):
    """Draws the start and the extent of an "inception" crop."""
    start, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.concat([shape, [3]], 0),
        tf.zeros((0, 0, 4)),
        tf.cast(numbers[:2] * 2**24, "int32"),
        min_object_covered=0.0,
        aspect_ratio_range=(0.75, 1.33),
        area_range=(area, 1.0),
        use_image_if_no_bounding_boxes=True,
    )
    return start[:2], extent[:2]
