"""Evaluation on several devices: they share full batches evenly, and each image counts once."""

import math

import tensorflow as tf


def even_batches(make, source, batch, share):
    """Returns full batches of a source, in which each image counts once.

    Args:
        make: Function from a source and a batch size to a `tf.data.Dataset` of `(images, labels)`, in order.
        source: Labelled images, with a length and `take(slice)`.
        batch: Images of a batch, over all processes.
        share: `(index, count)` of this process.

    Returns:
        A dataset of `(images, labels, weights)`, this process's part of each batch. The last are padded with images of
        weight 0. All other weights are slightly over 1 to compensate, since Keras divides by the number of all images.

    Raises:
        ValueError: If there are fewer images than processes.
    """
    (index, count), images = share, len(source)
    if images < count:
        raise ValueError(f"Every process must have one image or more. Received: {images} images, {count} processes")
    part = batch // count
    ours = source.take(slice(index * images // count, (index + 1) * images // count))
    steps = math.ceil(math.ceil(images / count) / part)  # of the process that has the most
    weight = steps * batch / images

    def pad(images, labels):
        present = tf.shape(images)[0]
        weights = tf.fill((present,), weight)
        padded = [tf.pad(a, [[0, part - present], *[[0, 0]] * (len(a.shape) - 1)]) for a in (images, labels, weights)]
        return tuple(tf.ensure_shape(a, (part, *a.shape[1:])) for a in padded)

    batches = make(ours, part)
    empty = tf.data.Dataset.from_tensors(tuple(tf.zeros((0, *spec.shape[1:])) for spec in batches.element_spec))
    batches = batches.concatenate(empty).take(steps).map(pad)
    return batches.apply(tf.data.experimental.assert_cardinality(steps)).prefetch(2)
