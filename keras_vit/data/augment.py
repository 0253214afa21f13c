"""Random changes to a batch of images, as functions of (images, settings, seed) and nothing else."""

import math

import tensorflow as tf


def augment(images, settings, seed):
    """Changes every image of a batch by its own draw.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, 0..255.
        settings: A `keras_vit.config.Augment`.
        seed: int tensor of shape `(2,)`; the same seed gives the same images.

    Returns:
        Tensor like `images`.
    """
    seeds = tf.unstack(tf.random.split(seed, 3))
    if settings.rotation or settings.scale or settings.shear or settings.translation:
        images = affine(images, settings, seeds[0])
    if settings.flip:
        images = tf.where(_uniform(seeds[1], images, 0, 1) < 0.5, tf.reverse(images, [2]), images)
    if settings.erase:
        images = erase(images, settings.erase, seeds[2])
    return images


def affine(images, settings, seed):
    """Turns, scales, shears and shifts each image about its centre; bilinear, black outside."""
    batch, (height, width) = tf.shape(images)[0], images.shape[1:3]
    limits = [
        settings.rotation * math.pi / 180,
        settings.scale,
        settings.shear,
        settings.translation,
        settings.translation,
    ]
    draws = tf.random.stateless_uniform((batch, 5), seed, -1.0, 1.0) * tf.constant(limits)
    angle, scale, shear, right, down = tf.unstack(draws, axis=1)
    scale = 1 / (1 + scale)
    cos, sin = tf.cos(angle) * scale, tf.sin(angle) * scale
    a, b, c, d = cos, shear * cos - sin, sin, shear * sin + cos  # output pixel -> input pixel
    x0, y0 = (width - 1) / 2, (height - 1) / 2
    shift_x = x0 - a * x0 - b * y0 + right * width
    shift_y = y0 - c * x0 - d * y0 + down * height
    zero = tf.zeros_like(a)
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.stack([a, b, shift_x, c, d, shift_y, zero, zero], axis=1),
        output_shape=(height, width),
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="CONSTANT",
    )


def erase(images, probability, seed):
    """Blackens one rectangle of 2 to 20 % of the area in some images (Zhong et al. 2020, arXiv:1708.04896)."""
    height, width = images.shape[1:3]
    chance, area, ratio, top, left = (_uniform(s, images, 0, 1) for s in tf.unstack(tf.random.split(seed, 5)))
    area, ratio = 0.02 + 0.18 * area, tf.exp((2 * ratio - 1) * math.log(3.0))  # height : width from 1/3 to 3
    rows, columns = height * tf.sqrt(area * ratio), width * tf.sqrt(area / ratio)
    y = tf.range(height, dtype="float32")[None, :, None, None] - top * (height - rows)
    x = tf.range(width, dtype="float32")[None, None, :, None] - left * (width - columns)
    inside = (y >= 0) & (y < rows) & (x >= 0) & (x < columns) & (chance < probability)
    return tf.where(inside, 0.0, images)


def _uniform(seed, images, low, high):
    return tf.random.stateless_uniform((tf.shape(images)[0], 1, 1, 1), seed, low, high)
