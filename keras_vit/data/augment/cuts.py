"""The visible part of an image: random for training, the whole or its center for evaluation. `crops` cuts it out.

`Augment.crop` names the random crop:

- `"inception"`: a box of 5 to 100 % of the area and an aspect ratio of 3:4 to 4:3 (Szegedy et al. 2015,
  arXiv:1409.4842), as big_vision's `inception_crop`. Of a JPEG only the box is decoded;
- `"window"`: a box of the model's size, or up to `crop_shrink` times as large, which is then shrunk;
- `"padded"`: a box of the model's size is cut out of the image with a black border, by `targets.moved`.

The first two flip too, while the pixels are few and still bytes.

For evaluation, `Data.resize` is the shorter side in pixels to which an image is resized before the center is cut out;
`(height, width)` to squash it to that before; `"window"` for the center of the image as it is; `"aspect"` to cut it to
the model's aspect ratio before it is resized; `"pad"` to pad it on the right and below to a square, as OWLv2's; `None`
for the whole image, resized to the model's size. An image that is padded in evaluation is so in training too, unless it
is cropped, and is flipped before that.
"""

import math
from typing import Any, NamedTuple

import tensorflow as tf

BOXES = ("inception", "window")  # of a JPEG, only the box is decoded


class Cut(NamedTuple):
    """The visible part of an image: a box is resized to a grid, from which a window of the model's size is cut."""

    shape: Any  # (height, width) of the image, int32
    start: Any  # (top, left) of the box
    extent: Any  # (height, width) of the box
    grid: Any  # (height, width) to which the box is resized
    window: Any = None  # (top, left) in the grid; None: all of it is seen
    flip: Any = None  # whether the result is mirrored, a bool tensor; None: no
    padded: bool = False  # whether the box is a square that is larger than the image, which is at its top left


def draw_cut(shape, size, settings, numbers):
    """Returns the `Cut` of one image for training, by its `(height, width)`."""
    if settings.crop == "inception":
        cut = Cut(shape, *_random_box(shape, settings.crop_area, numbers), size[:2])
    elif settings.crop == "window":
        most = tf.reduce_min(tf.cast(shape, "float32") / size[:2])  # below 1 of a smaller image, which is enlarged
        factor = tf.minimum(1 + numbers[2] * (settings.crop_shrink - 1), most)
        cut = _box(shape, factor, size, numbers[:2])
    else:
        return _whole(shape, size[:2])  # flipped in `augment`
    return cut._replace(flip=numbers[3] < 0.5) if settings.flip else cut


def center_cut(shape, size, data):
    """Returns the `Cut` of one image for evaluation: all of it, or its center."""
    if data.resize is None:
        return _whole(shape, size[:2])
    if data.resize == "window":
        cut = _box(shape, tf.minimum(tf.reduce_min(tf.cast(shape, "float32") / size[:2]), 1.0), size, 0.0)
        return cut._replace(start=(shape - cut.extent) // 2)
    if data.resize == "pad":
        return padded_cut(shape, size)
    if data.resize == "aspect":
        extent = tf.maximum(tf.minimum(shape, shape[::-1] * size[:2] // size[1::-1]), 1)
        return Cut(shape, (shape - extent) // 2, extent, size[:2])
    is_tuple = isinstance(data.resize, tuple)
    cut = _whole(shape, tf.constant(data.resize) if is_tuple else _grid(shape, data.resize, size))
    room = cut.grid - size[:2]
    halved = room // 2 if data.crop_offset == "floor" else tf.cast(tf.round(room / 2), "int32")
    return cut._replace(window=tf.unstack(halved))


def padded_cut(shape, size, flip=None):
    """Returns the `Cut` of all of an image, padded to a square; the image is flipped before that."""
    return Cut(shape, (0, 0), tf.tile([tf.reduce_max(shape)], [2]), size[:2], flip=flip, padded=True)


def _whole(shape, grid):
    return Cut(shape, (0, 0), shape, grid)


def _box(shape, factor, size, place):
    """Returns the cut of a box `factor` times as large as the model's images, at a share of the room around it."""
    extent = tf.cast(tf.round(tf.cast(size[:2], "float32") * factor), "int32")
    start = tf.cast(place * tf.cast(shape - extent + 1, "float32"), "int32")
    return Cut(shape, start, extent, size[:2])


def _grid(shape, pixels, size):
    """Resizes the shorter side to `pixels`; an oblong `size` then fits into the image by its own shorter side.

    Rounded as `keras_vit.preprocess` does, and torchvision and timm before it.
    """
    sides = [math.floor(pixels * side / min(size[:2]) + 1e-6) for side in size[:2]]
    if sides[0] == sides[1]:
        return sides[0] * shape // tf.reduce_min(shape)
    shape = tf.cast(shape, "float64")
    return tf.cast(tf.round(shape / tf.reduce_min(shape / sides)), "int32")


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
