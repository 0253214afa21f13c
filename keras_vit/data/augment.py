"""Random augmentation of a batch: pure functions of (examples, settings, draws)."""

import math

import tensorflow as tf

from keras_vit.data.crops import CUTS
from keras_vit.data.draws import scaled
from keras_vit.data.randaugment import randaugment
from keras_vit.data.targets import KINDS, change_some, moved


def augment(examples, settings, draw):
    """Augments every example of a batch by its own random numbers.

    Args:
        examples: Dictionary of `"images"`, a float32 tensor `(batch, height, width, channels)`, 0..255, and targets of
            `targets.KINDS`, which follow when their image moves.
        settings: A `keras_vit.config.Augment`; MixUp and CutMix are in `mixing`, crops of encoded images in `crops`.
        draw: Result of `keras_vit.data.draws.draws`.

    Returns:
        Dictionary like `examples`.

    Raises:
        ValueError: For RandAugment with targets that have a place in the image.
    """
    count, height, width = tf.shape(examples["images"])[0], *examples["images"].shape[1:3]
    if settings.crop == "padded":
        examples = moved(examples, "shift", settings.crop_padding, draw_shift(count, settings.crop_padding, draw))
    if settings.rotation or settings.scale or settings.shear or settings.translation:
        examples = moved(examples, "warp", draw_affine(count, height, width, settings, draw))
    if settings.flip and settings.crop not in CUTS:  # those crops flip too
        examples = moved(examples, "flip", draw("flip", count, 1)[:, 0] < 0.5)
    images = examples["images"]
    if settings.jitter:
        images = jitter(images, settings.jitter, draw)
    if settings.randaugment:
        placed = [name for name in examples if name != "images" and KINDS[name].warp]
        if placed:
            raise ValueError(f"Augment.randaugment moves images only. Received: {', '.join(placed)} beside them")
        images = randaugment(images, settings.randaugment, settings.magnitude, draw)
    if settings.erase:
        images = erase(images, settings.erase, draw)
    return {**examples, "images": images}


def draw_shift(count, padding, draw):
    """Draws where each image is cut out of itself with a border around it: `(batch, 2)`, from 0 to twice the border."""
    return tf.cast(draw("padded_crop", count, 2) * (2 * padding + 1), "int32")


def draw_affine(count, height, width, settings, draw):
    """Draws a rotation, scaling, shear and shift of each image about its centre.

    Returns:
        float32 tensor `(batch, 8)`, from output to input pixels, for `tf.raw_ops.ImageProjectiveTransformV3`.
    """
    limits = [
        settings.rotation * math.pi / 180,
        settings.scale,
        settings.shear,
        settings.translation,
        settings.translation,
    ]
    # float64, since in float32 the last bit of a cosine depends on how many are computed together
    numbers = tf.cast(scaled(draw("affine", count, 5), -1, 1), "float64")
    angle, scale, shear, right, down = tf.unstack(numbers * limits, axis=1)
    scale = 1 / (1 + scale)
    cos, sin = tf.cos(angle) * scale, tf.sin(angle) * scale
    a, b, c, d = cos, shear * cos - sin, sin, shear * sin + cos  # output pixel -> input pixel
    x0, y0 = (width - 1) / 2, (height - 1) / 2
    shift_x = x0 - a * x0 - b * y0 + right * width
    shift_y = y0 - c * x0 - d * y0 + down * height
    zero = tf.zeros_like(a)
    return tf.cast(tf.stack([a, b, shift_x, c, d, shift_y, zero, zero], axis=1), "float32")


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
    return change_some(images, chosen, lambda some: tf.where(inside, 0.0, some))
