"""Boxes of objects: what they do when their image is cut, flipped, shifted or warped.

The boxes of an image are float32 `(most, 5)`: top, left, bottom and right, as shares of the image's height and width,
and the index of a class. Rows of class -1 are empty, wherever they are. Class -2 - c is a region where class c is to be
ignored, such as a crowd (`models.outputs.ignored`). A box whose center leaves the image is dropped, a region that is
wholly outside; what sticks out of the image is cut off.
"""

import tensorflow as tf

EMPTY = (0.0, 0.0, 0.0, 0.0, -1.0)


def cut(boxes, cut, size):
    """Returns the boxes of one image where a `cuts.Cut` puts them; `size` is `(height, width)` of the result."""
    pixels = boxes[:, :4] * _twice(cut.shape) - _twice(cut.start)
    pixels = pixels / _twice(cut.extent) * _twice(cut.grid)
    pixels = pixels if cut.window is None else pixels - _twice(cut.window)
    edges = pixels / _twice(size)
    if cut.flip is not None:
        right = tf.cast(cut.shape[1] / cut.extent[1], "float32") if cut.padded else 1.0  # edge of the image
        edges = tf.where(cut.flip, _mirrored(edges, right), edges)
    return _inside(edges, boxes[:, 4:])


def flip(boxes, chosen, size):
    """Mirrors the boxes of the chosen images of a batch."""
    edges = tf.where(chosen[:, None, None], _mirrored(boxes[..., :4]), boxes[..., :4])
    return _inside(edges, boxes[..., 4:])


def shift(boxes, padding, start, size):
    """Moves the boxes of a batch as its images, which are padded and cut from `start`, `(batch, 2)`, on."""
    by = tf.cast(padding - start, "float32") / tf.cast(tf.stack(size), "float32")
    return _inside(boxes[..., :4] + tf.tile(by, [1, 2])[:, None], boxes[..., 4:])


def warp(boxes, transforms, size):
    """Moves the boxes of a batch by affine transforms, `(batch, 8)`, from output to input pixels: the smallest boxes
    around their four moved corners."""
    a, b, x0, c, d, y0 = tf.unstack(transforms[:, None, :6], axis=-1)  # (batch, 1) each
    height, width = (tf.cast(side, "float32") for side in size)
    top, left, bottom, right = tf.unstack(boxes[..., :4], axis=-1)  # (batch, most) each
    x = tf.stack([left, right, left, right], axis=0) * width - 0.5 - x0  # pixel centers are whole numbers
    y = tf.stack([top, top, bottom, bottom], axis=0) * height - 0.5 - y0
    determinant = a * d - b * c
    columns, rows = (d * x - b * y) / determinant + 0.5, (a * y - c * x) / determinant + 0.5
    places = (rows / height, columns / width)
    edges = [tf.reduce_min(p, axis=0) for p in places] + [tf.reduce_max(p, axis=0) for p in places]
    return _inside(tf.stack(edges, axis=-1), boxes[..., 4:])


def _twice(pair):
    return tf.tile(tf.cast(tf.stack(pair), "float32"), [2])


def _mirrored(edges, end=1.0):
    top, left, bottom, right = tf.unstack(edges, axis=-1)
    return tf.stack([top, end - right, bottom, end - left], axis=-1)


def _inside(edges, classes):
    middle = (edges[..., :2] + edges[..., 2:]) / 2
    inside = tf.reduce_all((middle >= 0) & (middle < 1), axis=-1, keepdims=True) & (classes >= 0)
    seen = tf.reduce_all((edges[..., :2] < 1) & (edges[..., 2:] > 0), axis=-1, keepdims=True)
    inside |= seen & (classes < -1)
    return tf.where(inside, tf.concat([tf.clip_by_value(edges, 0, 1), classes], axis=-1), EMPTY)
