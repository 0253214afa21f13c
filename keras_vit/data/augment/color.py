"""Random changes of the pixels of a batch, which leave targets alone: color jitter, random erasing, blur, inversion."""

import math

import numpy as np
import tensorflow as tf

from keras_vit.data.augment.moves import change_some
from keras_vit.data.draws import scaled


def jitter(images, strength, draw, channels=None):
    """Changes brightness, then contrast, then saturation, each by a factor of 1 - strength to 1 + strength.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, 0..255.
        strength: From 0 to 1.
        draw: Result of `keras_vit.data.draws.draws`.
        channels: Channels of one frame, of clips whose frames are folded into the channels; `None` for images.
    """
    if channels not in (None, images.shape[-1]):  # frames side by side: one mean, and one change, for all of them
        height, width, values = images.shape[1:]
        wide = tf.reshape(images, (-1, height, width * values // channels, channels))
        return tf.reshape(jitter(wide, strength, draw), (-1, height, width, values))
    factors = 1 + strength * scaled(draw("jitter", tf.shape(images)[0], 3), -1, 1)
    brightness, contrast, saturation = (factors[:, i, None, None, None] for i in range(3))
    images = tf.clip_by_value(images * brightness, 0, 255)
    mean = gray(tf.reduce_mean(images, axis=(1, 2), keepdims=True))
    images = tf.clip_by_value(mean + (images - mean) * contrast, 0, 255)
    plain = gray(images)
    return tf.clip_by_value(plain + (images - plain) * saturation, 0, 255)


def gray(images):
    """Returns luma (ITU-R 601, as Pillow's "L"), one channel; images with one channel are returned unchanged."""
    if images.shape[-1] == 1:
        return images
    red, green, blue = images[..., :1], images[..., 1:2], images[..., 2:]
    return red * 0.299 + green * 0.587 + blue * 0.114


def erase(images, probability, draw):
    """Blackens one rectangle of 2 to 20 % of the area in some images (Zhong et al. 2020, arXiv:1708.04896)."""
    height, width = images.shape[1:3]
    numbers = tf.cast(draw("erase", tf.shape(images)[0], 5), "float64")
    chosen = numbers[:, 0] < probability
    area, ratio, top, left = (number[:, None, None, None] for number in tf.unstack(numbers[chosen][:, 1:], axis=1))
    area, ratio = 0.02 + 0.18 * area, tf.exp((2 * ratio - 1) * math.log(3.0))  # height : width from 1/3 to 3
    rows, columns = height * tf.sqrt(area * ratio), width * tf.sqrt(area / ratio)
    y = tf.range(height, dtype="float64")[None, :, None, None] - top * (height - rows)
    x = tf.range(width, dtype="float64")[None, None, :, None] - left * (width - columns)
    inside = (y >= 0) & (y < rows) & (x >= 0) & (x < columns)
    return change_some(images, chosen, lambda some: tf.where(inside, 0.0, some))


def blur(images, deviations, radius):
    """Blurs each image by a Gaussian of its own.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`; the sides are above `radius`.
        deviations: Standard deviations in pixels, above 0, `(batch,)`.
        radius: Pixels on each side that count, an integer.
    """
    steps = tf.range(-radius, radius + 1, dtype="float32")
    weights = tf.exp(-tf.square(steps) / (2 * tf.square(deviations[:, None])))
    weights = tf.unstack((weights / tf.reduce_sum(weights, 1, keepdims=True))[..., None, None, None], axis=1)
    for axis in (1, 2):
        size = images.shape[axis]
        mirrored = np.pad(np.arange(size), radius, "reflect")  # `tf.pad` does not take a batch of no images
        wide = tf.gather(images, mirrored, axis=axis)
        parts = [wide[:, i : i + size] if axis == 1 else wide[:, :, i : i + size] for i in range(len(weights))]
        images = tf.add_n([weight * part for weight, part in zip(weights, parts)])
    return images


def solarize(images, threshold=128.0):
    """Inverts the pixels, 0..255, from a threshold on."""
    return tf.where(images < threshold, images, 255.0 - images)
