"""From a source to batches: shuffle, read and crop, augment, mix.

Order and augmentation are pure functions of (seed, epoch, position in the epoch), so a run can start at any step and
sees the batches that it would have seen.
"""

import math
import os

import tensorflow as tf

from keras_vit.data import crops, inspection
from keras_vit.data.augment import augment
from keras_vit.data.draws import draws
from keras_vit.data.image_files import read_files as read_files
from keras_vit.data.keras_layers import layers_function
from keras_vit.data.mixing import mix

CHUNK = 2**21  # pixel values that are processed at once


def training_batches(source, recipe, size, *, first_epoch=None, first_step=0, share=(0, 1)):
    """Returns shuffled, augmented batches.

    Args:
        source: Result of `sources.load`.
        recipe: A `Recipe`; its `data`, `augment`, `optim.epochs` and `seed` are read.
        size: `(height, width, channels)` of the images.
        first_epoch: If given, one pass contains all epochs from this one on, for `fit(steps_per_epoch=...)`.
            Otherwise each pass over the dataset is one epoch, every time in a new order.
        first_step: Steps of the first epoch to skip.
        share: `(index, count)` for several processes: the part of every batch at `index`, out of `count` equal parts.

    Returns:
        A `tf.data.Dataset` of `(images, labels)`: float32 `(batch, height, width, channels)`, 0..255,
        and float32 `(batch, classes)`, which sum to one. Batches are full; the rest of an epoch is dropped.

    Raises:
        ValueError: If there are fewer images than one batch, or the parts of a batch would not be equal.
    """
    batch, seed, settings = recipe.data.batch_size, recipe.seed, recipe.augment
    steps, part = steps_per_epoch(source, recipe), batch // share[1]
    if batch % share[1]:
        raise ValueError(f"A batch must divide into equal parts. Received: {batch} images among {share[1]} processes")
    chunk = _chunk(part, size)
    read = _reader(source, size, recipe.data, settings)

    def shuffled_keys(epoch):  # chunks of other processes, and skipped steps, are dropped before any image is read
        chunks = source.shuffled(seed, epoch, chunk).take(steps * batch // chunk).enumerate()
        ours = chunks.filter(lambda number, _: number * chunk % batch // part == share[0])
        return ours.map(lambda number, keys: (epoch, number * chunk, keys))

    def read_and_augment(epoch, first, keys):
        draw = draws(seed, epoch, first)
        images, labels = read(keys, draw("crop", chunk, 4))
        return augment(images, settings, draw), labels, tf.tile([[epoch, first]], (chunk, 1))

    def mix_batch(images, labels, at):
        return mix(images, labels, settings, tf.random.fold_in(at[0], seed))

    if first_epoch is None:
        epochs, count = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).take(1), 1
    else:
        epochs, count = tf.data.Dataset.range(first_epoch, recipe.optim.epochs), recipe.optim.epochs - first_epoch
    keys = epochs.flat_map(shuffled_keys).skip(first_step * (part // chunk))
    batches = _parallel(keys, read_and_augment).rebatch(part, drop_remainder=True)
    if settings.layers:
        batches = batches.map(layers_function(settings.layers, seed))
    batches = batches.map(mix_batch, num_parallel_calls=2, deterministic=True)
    return _prefetch(batches, steps * count - first_step)


def evaluation_batches(source, recipe, size, batch=None):
    """Returns every image once, in order; the last batch may be smaller. Otherwise like `training_batches`.

    `batch` is the batch size; the recipe's if `None`.
    """
    batch = batch or recipe.data.batch_size
    keys = source.in_order(_chunk(batch, size))
    batches = _parallel(keys, _reader(source, size, recipe.data)).rebatch(batch)
    return _prefetch(batches, -(-len(source) // batch))


def evaluation_arrays(source, recipe, size):
    """Yields `evaluation_batches` as NumPy arrays; if a file can no longer be read, raises ValueError with its name."""
    with inspection.named(source):
        yield from evaluation_batches(source, recipe, size).as_numpy_iterator()


def steps_per_epoch(source, recipe):
    """Returns the number of full batches."""
    if len(source) < recipe.data.batch_size:
        raise ValueError(
            "The training split must have as many images as one batch, or more. "
            f"Received: {len(source)} images, data.batch_size={recipe.data.batch_size}"
        )
    return len(source) // recipe.data.batch_size


def _reader(source, size, data, settings=None):
    """Returns a function from a source's keys to (images, one-hot labels).

    With `settings`, an `Augment`, images are cropped for training, by random numbers that the function takes too.
    """
    look_up, cut = source.reader(), settings is not None and settings.crop in crops.CUTS

    def bring_to_size(item, numbers):
        if settings is None:
            return crops.evaluation_image(item, size, data)
        return crops.training_image(item, size, data, settings, numbers)

    def read_images(keys, numbers=None):
        items, labels = look_up(keys)
        if items.dtype != tf.string and items.shape[1:] == size and not cut:
            images = tf.cast(items, "float32")
        else:
            numbers = tf.zeros((tf.size(keys), 4)) if numbers is None else numbers
            images = tf.map_fn(lambda pair: bring_to_size(*pair), (items, numbers), fn_output_signature=tf.float32)
        return tf.ensure_shape(images, (None, *size)), tf.one_hot(labels, len(source.class_names))

    return read_images


def _chunk(batch, size):
    """Returns how many images are processed at once: the largest divisor of the batch that needs little memory."""
    most = max(CHUNK // math.prod(size), 1)
    return max(n for n in range(1, min(batch, most) + 1) if batch % n == 0)


def _parallel(dataset, function):
    return dataset.map(function, num_parallel_calls=os.cpu_count(), deterministic=True)


def _prefetch(batches, count):
    """Prepares batches ahead of their reader, and declares their number.

    Without tf.data's autotuning: its thread sleeps for 10, 20, 40 ... ms, up to a minute, and an iterator at its end
    waits for it, by up to the time that the pass took.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = batches.apply(tf.data.experimental.assert_cardinality(count))
    return batches.prefetch(4).with_options(options)
