"""RandAugment (Cubuk et al. 2020, arXiv:1909.13719): a few operations on each image, drawn from sixteen.

The operations and their strengths are those of big_vision and EfficientNet's code, each with Pillow's results. Each
takes a uint8 image, `(height, width, channels)`; the strength, 0 to 3; a sign, -1 or 1; and two random numbers. Lengths
in pixels, which big_vision gives for images of 224, are shares of the side here.
"""

import math

import tensorflow as tf

GRAY = 128  # fills what an image was moved away from


def _lookup(image, tables):
    """Maps each channel through its own table, `(channels, 256)`."""
    channels = image.shape[-1]
    return tf.gather(tf.reshape(tables, [-1]), tf.cast(image, "int32") + 256 * tf.range(channels))


def _whole(values):
    return tf.cast(tf.clip_by_value(values, 0, 255), "uint8")  # truncates, as Pillow


def _autocontrast(image, *_):
    low, high = (tf.cast(f(image, axis=(0, 1)), "float64")[:, None] for f in (tf.reduce_min, tf.reduce_max))
    scale = 255 / tf.maximum(high - low, 1)
    every = tf.range(256, dtype="float64")
    tables = tf.where(high > low, every * scale - low * scale, every)
    return _lookup(image, _whole(tables))


def _equalize(image, *_):
    channels = image.shape[-1]
    index = tf.cast(image, "int32") + 256 * tf.range(channels)
    counts = tf.reshape(tf.math.bincount(tf.reshape(index, [-1]), minlength=256 * channels), (channels, 256))
    last = tf.reduce_max(tf.where(counts > 0, tf.range(256), 0), axis=1)
    step = (tf.reduce_sum(counts, axis=1) - tf.gather(counts, last, batch_dims=1))[:, None] // 255
    tables = (tf.cumsum(counts, axis=1, exclusive=True) + step // 2) // tf.maximum(step, 1)
    return _lookup(image, _whole(tf.where(step > 0, tables, tf.range(256))))


def _invert(image, *_):
    return 255 - image


def _posterize(image, strength, *_):
    bits = min(max(int(strength * 4), 1), 8)  # at least one, as in TensorFlow, whose shift by 8 is one by 7
    return image & tf.constant(256 - 2 ** (8 - bits), "uint8")


def _solarize(image, strength, *_):
    threshold = int(strength * 256)
    return image if threshold > 255 else image ^ (tf.cast(image >= threshold, "uint8") * 255)


def _solarize_add(image, strength, *_):
    added = tf.minimum(255 - image, min(int(strength * 110), 255))
    return image + added * tf.cast(image < 128, "uint8")


def _blend(other, image, factor):
    other, image = tf.cast(other, "float32"), tf.cast(image, "float32")
    return _whole(other + factor * (image - other))


def _factor(strength):
    return strength * 1.8 + 0.1


def _luma(image):
    """Returns luma (ITU-R 601) by Pillow's integer arithmetic, one channel."""
    if image.shape[-1] == 1:
        return image
    red, green, blue = (tf.cast(image[..., i : i + 1], "int32") for i in range(3))
    return tf.cast(tf.bitwise.right_shift(red * 19595 + green * 38470 + blue * 7471 + 0x8000, 16), "uint8")


def _color(image, strength, *_):
    return _blend(_luma(image), image, _factor(strength))


def _contrast(image, strength, *_):
    mean = tf.floor(tf.reduce_mean(tf.cast(_luma(image), "float64")) + 0.5)
    return _blend(mean, image, _factor(strength))


def _brightness(image, strength, *_):
    return _blend(0, image, _factor(strength))


def _sharpness(image, strength, *_):
    channels = image.shape[-1]
    kernel = tf.constant([[1, 1, 1], [1, 5, 1], [1, 1, 1]], "float32") / 13
    kernel = tf.tile(kernel[:, :, None, None], (1, 1, channels, 1))
    smooth = tf.nn.depthwise_conv2d(tf.cast(image[None], "float32"), kernel, (1, 1, 1, 1), "VALID")[0]
    smooth = tf.pad(_whole(tf.floor(smooth + 0.5)), ((1, 1), (1, 1), (0, 0)))
    inner = tf.pad(tf.ones(tf.shape(smooth)[:2] - 2, "bool"), ((1, 1), (1, 1)))[:, :, None]
    return _blend(tf.where(inner, smooth, image), image, _factor(strength))


def _move(image, matrix):
    """Applies Pillow's affine matrix (a, b, c, d, e, f), from output to input; nearest, gray outside."""
    a, b, c, d, e, f = (tf.cast(value, "float32") for value in matrix)
    c, f = c + (a + b - 1) / 2, f + (d + e - 1) / 2  # Pillow counts from a pixel's corner, TensorFlow from its center
    height, width = image.shape[:2]
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=image[None],
        transforms=tf.stack([a, b, c, d, e, f, tf.zeros_like(a), tf.zeros_like(a)])[None],
        output_shape=(height, width),
        fill_value=GRAY,
        interpolation="NEAREST",
        fill_mode="CONSTANT",
    )[0]


def _rotate(image, strength, sign, _):
    height, width = image.shape[:2]
    angle = -sign * (strength * 30 * math.pi / 180)
    cos, sin, x, y = tf.cos(angle), tf.sin(angle), width / 2, height / 2
    return _move(image, (cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y))


def _shear_x(image, strength, sign, _):
    return _move(image, (1, 0.3 * strength * sign, 0, 0, 1, 0))


def _shear_y(image, strength, sign, _):
    return _move(image, (1, 0, 0, 0.3 * strength * sign, 1, 0))


def _translate_x(image, strength, sign, _):
    return _move(image, (1, 0, sign * (strength * 100 / 224 * image.shape[1]), 0, 1, 0))


def _translate_y(image, strength, sign, _):
    return _move(image, (1, 0, 0, 0, 1, sign * (strength * 100 / 224 * image.shape[0])))


def _cutout(image, strength, _, center):
    near = []
    for axis, side in enumerate(image.shape[:2]):
        half = int(strength * 40 / 224 * side)
        near.append(tf.abs(tf.range(side, dtype="float32") + 0.5 - tf.floor(center[axis] * side)) < half)
    inside = near[0][:, None] & near[1][None, :]
    return tf.where(inside[:, :, None], tf.constant(GRAY, "uint8"), image)


OPERATIONS = {
    "AutoContrast": _autocontrast,
    "Equalize": _equalize,
    "Invert": _invert,
    "Rotate": _rotate,
    "Posterize": _posterize,
    "Solarize": _solarize,
    "Color": _color,
    "Contrast": _contrast,
    "Brightness": _brightness,
    "Sharpness": _sharpness,
    "ShearX": _shear_x,
    "ShearY": _shear_y,
    "TranslateX": _translate_x,
    "TranslateY": _translate_y,
    "Cutout": _cutout,
    "SolarizeAdd": _solarize_add,
}


def randaugment(images, count, magnitude, draw):
    """Applies `count` operations, drawn with replacement, to each image. Only the drawn ones are computed.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, 0..255; fractions are truncated.
        count: Operations an image.
        magnitude: Strength of all of them, 0 to 30; the paper's scale was made for at most 10.
        draw: Result of `keras_vit.data.draws.draws`.

    Returns:
        Tensor like `images`, whole numbers.
    """
    numbers = draw("randaugment", tf.shape(images)[0], 4 * count)

    def apply_operations(image, numbers):
        for which, sign, row, column in (tf.unstack(numbers[4 * i : 4 * i + 4]) for i in range(count)):
            arguments = (image, magnitude / 10, tf.where(sign < 0.5, -1.0, 1.0), tf.stack([row, column]))
            branches = [lambda f=function, a=arguments: f(*a) for function in OPERATIONS.values()]
            image = tf.switch_case(tf.cast(which * len(branches), "int32"), branches)
            image.set_shape(images.shape[1:])
        return image

    whole = tf.cast(tf.clip_by_value(images, 0, 255), "uint8")
    changed = tf.map_fn(lambda pair: apply_operations(*pair), (whole, numbers), fn_output_signature=tf.uint8)
    return tf.cast(tf.ensure_shape(changed, images.shape), "float32")
