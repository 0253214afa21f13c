"""MixUp and CutMix: a batch blended with itself, labels by the same weights."""

import tensorflow as tf


def mix(images, labels, settings, seed):
    """Blends each image, and its label, with the one before it in the batch, by one weight for the batch.

    MixUp (Zhang et al. 2018, arXiv:1710.09412) blends whole images by a weight from Beta(a, a), of which the larger
    part is the image's own, as in big_vision; CutMix (Yun et al. 2019, arXiv:1905.04899) puts in a box, and the labels
    are weighted by the pixels that it really covers. With both set, each batch draws one of them.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`.
        labels: float32 tensor, `(batch, classes)`.
        settings: A `keras_vit.config.Augment`.
        seed: Integer tensor of shape `(2,)`.

    Returns:
        Images and labels.
    """
    if not settings.mixup and not settings.cutmix:
        return images, labels
    which, beta, place = tf.unstack(tf.random.split(seed, 3))

    def mixup():
        own = _beta(settings.mixup, beta)
        own = tf.maximum(own, 1 - own)
        return _blend(images, own), _blend(labels, own)

    def cutmix():
        shape = tf.shape(images)
        box = _box(shape[1], shape[2], 1 - _beta(settings.cutmix, beta), place)
        own = 1 - tf.reduce_mean(tf.cast(box, "float32"))
        return tf.where(box, tf.roll(images, 1, axis=0), images), _blend(labels, own)

    if not settings.cutmix:
        return mixup()
    if not settings.mixup:
        return cutmix()
    return tf.cond(tf.random.stateless_uniform((), which) < 0.5, mixup, cutmix)


def _beta(alpha, seed):
    """Draws from Beta(alpha, alpha): a gamma over the sum of two."""
    first, second = tf.unstack(tf.random.stateless_gamma((2,), seed, alpha, dtype="float64"))
    return tf.cast(tf.math.divide_no_nan(first, first + second), "float32")


def _blend(values, own):
    return own * values + (1 - own) * tf.roll(values, 1, axis=0)


def _box(height, width, area, seed):
    """Returns `(1, height, width, 1)`, true in a box of that share of the area, cut off at the borders."""
    centre = tf.random.stateless_uniform((2,), seed)
    sides = [_inside(size, centre[i], tf.sqrt(area)) for i, size in enumerate((height, width))]
    return (sides[0][:, None] & sides[1][None, :])[None, :, :, None]


def _inside(size, centre, share):
    length = tf.cast(size, "float32")
    middle, half = centre * length, tf.floor(share * length) / 2
    at = tf.range(size, dtype="float32") + 0.5
    return (at >= middle - half) & (at < middle + half)
