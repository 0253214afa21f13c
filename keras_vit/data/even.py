"""Evaluation on several devices, which share batches evenly: all of them full, and each image counted once."""

import math

import tensorflow as tf


def even_batches(make, source, batch, share):
    """Returns batches of a source in which each image counts once, all of them full.

    Args:
        make: Function from a source and a batch size to a `tf.data.Dataset` of `(images, labels)`, in order.
        source: What has a length and `take(slice)`.
        batch: Images of a batch, over all processes.
        share: `(index, count)` of this process.

    Returns:
        A dataset of `(images, labels, weights)`, this process's part of each batch. The last are filled up by images of
        weight 0. The others' weight, slightly over 1, makes up for them where Keras divides by all.

    Raises:
        ValueError: If there are fewer images than processes.
    """
    (index, count), images = share, len(source)
    if images < count:
        raise ValueError(f"Every process measures an image at least. Received: {images} images, {count} processes")
    part = batch // count
    ours = source.take(slice(index * images // count, (index + 1) * images // count))
    steps = math.ceil(math.ceil(images / count) / part)  # of the process that has the most
    weight = steps * batch / images

    def fill(images, labels):
        found = tf.shape(images)[0]
        weights = tf.fill((found,), weight)
        full = [tf.pad(a, [[0, part - found], *[[0, 0]] * (len(a.shape) - 1)]) for a in (images, labels, weights)]
        return tuple(tf.ensure_shape(a, (part, *a.shape[1:])) for a in full)

    batches = make(ours, part)
    empty = tf.data.Dataset.from_tensors(tuple(tf.zeros((0, *spec.shape[1:])) for spec in batches.element_spec))
    batches = batches.concatenate(empty).take(steps).map(fill)
    return batches.apply(tf.data.experimental.assert_cardinality(steps)).prefetch(2)
