"""Evaluation on several devices: they share full batches evenly, and each image counts once."""

import math

import tensorflow as tf


def even_batches(make, source, batch, share):
    """Returns full batches of a source, in which each image counts once.

    Args:
        make: Function from a source and a batch size to a `tf.data.Dataset` of `(x, y)`, in order: tensors, or
            structures of tensors.
        source: Images and targets, with a length and `take(slice)`.
        batch: Images of a batch, over all processes.
        share: `(index, count)` of this process.

    Returns:
        A dataset of `(x, y, weights)`, this process's part of each batch. The last are padded with images of
        weight 0. All other weights are slightly over 1 to compensate, since Keras divides by the number of all images.

    Raises:
        ValueError: If there are fewer images than processes.
    """
    (index, count), images = share, len(source)
    if images < count:
        raise ValueError(f"Every process must have one image or more. Received: {images} images, {count} processes")
    part = batch // count
    own = source.take(slice(index * images // count, (index + 1) * images // count))
    steps = math.ceil(math.ceil(images / count) / part)  # of the process that has the most
    weight = steps * batch / images

    def pad_one(array, present):
        padded = tf.pad(array, [[0, part - present], *[[0, 0]] * (len(array.shape) - 1)])
        return tf.ensure_shape(padded, (part, *array.shape[1:]))

    def pad(*pair):
        present = tf.shape(tf.nest.flatten(pair)[0])[0]
        everything = (*pair, tf.fill((present,), weight))
        return tf.nest.map_structure(lambda array: pad_one(array, present), everything)

    batches = make(own, part)
    none = tf.nest.map_structure(lambda spec: tf.zeros((0, *spec.shape[1:]), spec.dtype), batches.element_spec)
    empty = tf.data.Dataset.from_tensors(none)
    batches = batches.concatenate(empty).take(steps).map(pad)
    return batches.apply(tf.data.experimental.assert_cardinality(steps)).prefetch(2)
