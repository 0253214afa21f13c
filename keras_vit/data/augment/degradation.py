"""What spoils images, for a model that learns to undo it, on batches of any size."""

import functools
import math

import tensorflow as tf

REACH = 2  # pixels of the result on either side, of cubic convolution
SQUARE = 8  # pixels of a side of what `masked` covers


def degraded(images, task, seed):
    """Returns images as a `keras_vit.config.Restore` says, pixels as an image file has them.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, 0..255, sides multiples of the scale.
        task: The `Restore`.
        seed: Integer tensor, `(2,)`, from which all randomness comes.
    """
    if task.scale > 1:
        images = _rounded(shrunk(images, task.scale))
    if task.gray:
        images = _rounded(tf.image.rgb_to_grayscale(images))
    shape = images.shape  # as far as it is known
    if task.noise:
        images = _rounded(noisy(images, task.noise, tf.random.fold_in(seed, 1)))
    if task.jpeg:
        images = compressed(images, task.jpeg)
    if task.mask:
        images = masked(images, task.mask, tf.random.fold_in(seed, 2))
    return tf.ensure_shape(images, shape)


def degraded_by_job(examples, tasks, seed):
    """Returns examples as a model of several jobs takes them: each image as its job says, at the size of the original.

    Args:
        examples: `"images"`, float32 `(batch, height, width, channels)`, 0..255, whose sides are cut to multiples of
            all scales; and `"labels"`, int32 `(batch,)`, the index of each image's job. Without, the jobs are drawn.
        tasks: The `Restore` of each job.
        seed: As in `degraded`.

    Returns:
        The examples with `"images"`, `"originals"` and `"labels"`.
    """
    images, step = examples["images"], math.lcm(*(task.scale for task in tasks))
    height, width = ((images.shape[i] or tf.shape(images)[i]) // step * step for i in (1, 2))
    images = images[:, :height, :width]
    count = tf.shape(images)[0]
    labels = examples.get("labels")
    if labels is None:
        labels = tf.random.stateless_uniform([count], tf.random.fold_in(seed, 3), 0, len(tasks), "int32")

    def one(each):
        image, label, own = each[0][None], each[1], tf.random.fold_in(seed, 4 + each[2])
        return tf.switch_case(label, [functools.partial(_at_size, image, task, own) for task in tasks])[0]

    made = tf.map_fn(one, (images, labels, tf.range(count)), fn_output_signature="float32")
    made = tf.ensure_shape(made, images.shape)
    return {**examples, "images": made, "originals": images, "labels": tf.ensure_shape(labels, images.shape[:1])}


def _at_size(images, task, seed):
    small = degraded(images, task, seed)
    if task.scale == 1:
        return small
    return _rounded(tf.image.resize(small, tf.shape(images)[1:3], "bicubic", antialias=True))


def shrunk(images, scale):
    """Shrinks images by Keys' cubic convolution, widened against aliasing, as MATLAB's `imresize` does.

    Pixels beyond an edge are the mirrored ones.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, sides multiples of the scale.
        scale: Factor on both sides, an integer.
    """
    height, width = ((images.shape[i] or tf.shape(images)[i]) // scale for i in (1, 2))  # numbers, where they are known
    around = [REACH * scale] * 2
    images = tf.pad(images, [[0, 0], around, around, [0, 0]], "SYMMETRIC")
    small = tf.image.resize(images, (height + 2 * REACH, width + 2 * REACH), "bicubic", antialias=True)
    return small[:, REACH : REACH + height, REACH : REACH + width]


def noisy(images, deviation, seed):
    """Adds normal noise of a standard deviation on the scale of pixels."""
    return images + deviation * tf.random.stateless_normal(tf.shape(images), seed)


def compressed(images, quality):
    """Compresses images as JPEG files of a quality from 1 to 100, and reads them again."""
    pixels = tf.cast(_rounded(images), "uint8")
    if pixels.shape[-1] == 1:
        pixels = tf.image.grayscale_to_rgb(pixels)
    decoded = tf.map_fn(lambda image: tf.image.adjust_jpeg_quality(image, quality), pixels)
    return tf.cast(decoded[..., : images.shape[-1]], "float32")


def masked(images, share, seed):
    """Makes squares of 8 x 8 pixels black, each with a probability."""
    count, (height, width) = tf.shape(images)[0], tf.unstack(tf.shape(images)[1:3])
    shape = (count, -(-height // SQUARE), -(-width // SQUARE))
    seen = tf.cast(tf.random.stateless_uniform(shape, seed) >= share, "float32")
    seen = tf.gather(seen, tf.range(height) // SQUARE, axis=1)
    return images * tf.gather(seen, tf.range(width) // SQUARE, axis=2)[..., None]


def _rounded(images):
    return tf.clip_by_value(tf.round(images), 0.0, 255.0)
