"""Random augmentation of a batch of images: pure functions of (images, settings, draws)."""

import math

import tensorflow as tf

from keras_vit.data.crops import CUTS
from keras_vit.data.draws import scaled
from keras_vit.data.randaugment import randaugment


def augment(images, settings, draw):
    """Augments every image of a batch by its own random numbers.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, 0..255.
        settings: A `keras_vit.options.Augment`; MixUp and CutMix are in `mixing`, crops of encoded images in `crops`.
        draw: Result of `keras_vit.data.draws.draws`.

    Returns:
        Tensor like `images`.
    """
    if settings.crop == "padded":
        images = padded_crop(images, settings.crop_padding, draw)
    if settings.rotation or settings.scale or settings.shear or settings.translation:
        images = affine(images, settings, draw)
    if settings.flip and settings.crop not in CUTS:  # those crops flip too
        chosen = draw("flip", tf.shape(images)[0], 1)[:, 0] < 0.5
        images = _change_some(images, chosen, lambda some: tf.reverse(some, [2]))
    if settings.jitter:
        images = jitter(images, settings.jitter, draw)
    if settings.randaugment:
        images = randaugment(images, settings.randaugment, settings.magnitude, draw)
    if settings.erase:
        images = erase(images, settings.erase, draw)
    return images


def padded_crop(images, padding, draw):
    """Pads with black and crops to the old size, at a random place for each image."""
    count, (height, width) = tf.shape(images)[0], images.shape[1:3]
    start = tf.cast(draw("padded_crop", count, 2) * (2 * padding + 1), "int32")  # (batch, 2)
    images = tf.pad(images, [[0, 0], [padding, padding], [padding, padding], [0, 0]])
    images = tf.gather(images, start[:, :1] + tf.range(height), axis=1, batch_dims=1)
    return tf.gather(images, start[:, 1:] + tf.range(width), axis=2, batch_dims=1)


def affine(images, settings, draw):
    """Rotates, scales, shears and shifts each image about its centre; bilinear, black outside."""
    batch, (height, width) = tf.shape(images)[0], images.shape[1:3]
    limits = [
        settings.rotation * math.pi / 180,
        settings.scale,
        settings.shear,
        settings.translation,
        settings.translation,
    ]
    # float64, since in float32 the last bit of a cosine depends on how many are computed together
    numbers = tf.cast(scaled(draw("affine", batch, 5), -1, 1), "float64")
    angle, scale, shear, right, down = tf.unstack(numbers * limits, axis=1)
    scale = 1 / (1 + scale)
    cos, sin = tf.cos(angle) * scale, tf.sin(angle) * scale
    a, b, c, d = cos, shear * cos - sin, sin, shear * sin + cos  # output pixel -> input pixel
    x0, y0 = (width - 1) / 2, (height - 1) / 2
    shift_x = x0 - a * x0 - b * y0 + right * width
    shift_y = y0 - c * x0 - d * y0 + down * height
    zero = tf.zeros_like(a)
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.cast(tf.stack([a, b, shift_x, c, d, shift_y, zero, zero], axis=1), "float32"),
        output_shape=(height, width),
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="CONSTANT",
    )


def jitter(images, strength, draw):
    """Changes brightness, then contrast, then saturation, each by a factor of 1 - strength to 1 + strength."""
    factors = 1 + strength * scaled(draw("jitter", tf.shape(images)[0], 3), -1, 1)
    brightness, contrast, saturation = (factors[:, i, None, None, None] for i in range(3))
    images = tf.clip_by_value(images * brightness, 0, 255)
    mean = grey(tf.reduce_mean(images, axis=(1, 2), keepdims=True))
    images = tf.clip_by_value(mean + (images - mean) * contrast, 0, 255)
    plain = grey(images)
    return tf.clip_by_value(plain + (images - plain) * saturation, 0, 255)


def grey(images):
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
    return _change_some(images, chosen, lambda some: tf.where(inside, 0.0, some))


def _change_some(images, chosen, change):
    """Changes only the chosen images: copying them takes less time than `tf.where` on every pixel."""
    index = tf.where(chosen)
    return tf.tensor_scatter_nd_update(images, index, change(tf.gather_nd(images, index)))
