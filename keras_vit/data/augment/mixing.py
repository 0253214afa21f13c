"""MixUp and CutMix: blend a batch with itself, and its labels by the same weight."""

import tensorflow as tf


def mixed(examples, classes, augment, seed):
    """Returns the images and one-hot labels of a batch of examples, blended by `mix` if there is an augmentation.

    Args:
        examples: Dictionary of `"images"`, float32 `(batch, height, width, channels)`, and `"labels"`, `(batch,)`.
        classes: Number of classes.
        augment: A `keras_vit.config.Augment`, or `None` at evaluation.
        seed: Integer tensor of shape `(2,)`.

    Returns:
        Images, and float32 labels `(batch, classes)`, which sum to one.
    """
    images, labels = examples["images"], tf.one_hot(examples["labels"], classes)
    return (images, labels) if augment is None else mix(images, labels, augment, seed)


def mixed_several(examples, augment, seed):
    """Returns the images and several labels of a batch, blended like those of `mixed`.

    Args:
        examples: Dictionary of `"images"` as there, and `"multilabels"`, `(batch, classes)`: 1, 0 or -1 for unknown.
        augment: As there.
        seed: As there.

    Returns:
        Images, and float32 labels `(batch, classes)`: from 0 to 1, or -1 where it is unknown of either image.
    """
    images, labels = examples["images"], tf.cast(examples["multilabels"], "float32")
    if augment is None:
        return images, labels
    unknown = tf.cast(labels < 0, "float32")  # blended too
    images, both = mix(images, tf.concat([tf.maximum(labels, 0), unknown], axis=1), augment, seed)
    labels, unknown = tf.split(both, 2, axis=1)
    return images, tf.where(unknown > 0, -1.0, labels)


def mix(images, labels, settings, seed):
    """Blends each image, and its label, with the one before it in the batch, by one weight for the batch.

    MixUp (Zhang et al. 2018, arXiv:1710.09412) blends whole images by a weight from Beta(a, a). As in big_vision, the
    image itself keeps the larger part. CutMix (Yun et al. 2019, arXiv:1905.04899) pastes a box, and weights the labels
    by the pixels that it really covers. With both set, each batch draws one of them.

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
        sizes, centers = tf.shape(images)[1:3], tf.random.stateless_uniform((2,), place)
        area = 1 - _beta(settings.cutmix, beta)
        (top, bottom), (left, right) = (_ends(sizes[i], area, centers[i]) for i in range(2))
        rows = images[:, top:bottom]  # concatenation takes a quarter of the time of `tf.where` on every pixel
        box = tf.roll(rows[:, :, left:right], 1, axis=0)
        rows = tf.concat([rows[:, :, :left], box, rows[:, :, right:]], axis=2)
        mixed = tf.concat([images[:, :top], rows, images[:, bottom:]], axis=1)
        own = 1 - tf.cast((bottom - top) * (right - left), "float32") / tf.cast(sizes[0] * sizes[1], "float32")
        return tf.ensure_shape(mixed, images.shape), _blend(labels, own)

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


def _ends(size, area, center):
    """Returns where a box with this share of the area begins and ends on one side, clipped at the borders."""
    length = tf.cast(size, "float32")
    half = tf.floor(tf.sqrt(area) * length) / 2
    ends = tf.stack([center * length - half, center * length + half])
    return tf.unstack(tf.clip_by_value(tf.cast(tf.math.ceil(ends - 0.5), "int32"), 0, size))
