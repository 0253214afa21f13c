"""From a source to batches. Order and augmentation are pure functions of (seed, epoch, position)."""

import math
import os

import numpy as np
import tensorflow as tf

from keras_vit.config import Data
from keras_vit.data import crops, inspection
from keras_vit.data.augment import augment
from keras_vit.data.draws import draws
from keras_vit.data.keras_layers import layers_function
from keras_vit.data.mixing import mix
from keras_vit.images import encoded

CHUNK = 2**21  # pixel values that are made in one piece


def training_batches(source, recipe, size, *, first_epoch=None, first_step=0, share=(0, 1)):
    """Returns shuffled, augmented batches.

    What is drawn is a function of the seed, the epoch and the position in it, so that a run can start at any step and
    see what it would have seen.

    Args:
        source: What `sources.load` returns.
        recipe: A `Recipe`; its `data`, `augment`, `optim.epochs` and `seed` are read.
        size: `(height, width, channels)` of the images.
        first_epoch: If given, one pass holds all epochs from that one on, for `fit(steps_per_epoch=...)`.
            Otherwise each pass over the dataset is one epoch, every time in a new order.
        first_step: Steps of the first epoch to leave out.
        share: `(index, count)`: the index-th of so many equal parts of every batch, for several processes.

    Returns:
        A `tf.data.Dataset` of `(images, labels)`: float32 `(batch, height, width, channels)`, 0..255,
        and float32 `(batch, classes)`, which sum to one. Batches are full; what is left over is dropped.

    Raises:
        ValueError: If there are fewer images than one batch holds, or its parts would not be equal.
    """
    batch, seed, settings = recipe.data.batch_size, recipe.seed, recipe.augment
    steps, part = steps_per_epoch(source, recipe), batch // share[1]
    if batch % share[1]:
        raise ValueError(f"A batch is divided into equal parts. Received: {batch} images among {share[1]} processes")
    chunk = _chunk(part, size)
    pieces = part // chunk  # of this process, a step
    read = _reader(source, size, recipe.data, settings)

    def chunks(epoch):  # those of others are passed over before they are decoded, and so are steps left out
        every = source.shuffled(seed, epoch, chunk).take(steps * batch // chunk).enumerate()
        ours = every.filter(lambda number, _: number * chunk % batch // part == share[0])
        return ours.map(lambda number, keys: (epoch, number * chunk, keys))

    def make(epoch, first, keys):
        draw = draws(seed, epoch, first)
        images, labels = read(keys, draw("crop", chunk, 4))
        return augment(images, settings, draw), labels, tf.tile([[epoch, first]], (chunk, 1))

    if first_epoch is None:
        epochs, count = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).take(1), 1
    else:
        epochs, count = tf.data.Dataset.range(first_epoch, recipe.optim.epochs), recipe.optim.epochs - first_epoch
    order = epochs.flat_map(chunks).skip(first_step * pieces)
    batches = _parallel(order, make).rebatch(part, drop_remainder=True)
    if settings.layers:
        batches = batches.map(layers_function(settings.layers, seed))

    def mixed(images, labels, at):
        return mix(images, labels, settings, tf.random.fold_in(at[0], seed))

    batches = batches.map(mixed, num_parallel_calls=2, deterministic=True)
    return _ahead(batches, steps * count - first_step)


def evaluation_batches(source, recipe, size, batch=None):
    """Returns every image once, in order; the last batch may be smaller. Like `training_batches` otherwise.

    `batch` is the number of images in one; the recipe's if `None`.
    """
    batch = batch or recipe.data.batch_size
    keys = source.in_order(_chunk(batch, size))
    batches = _parallel(keys, _reader(source, size, recipe.data)).rebatch(batch)
    return _ahead(batches, -(-len(source) // batch))


def evaluation_arrays(source, recipe, size):
    """Yields `evaluation_batches` as NumPy arrays; a file that can no longer be read is a ValueError with its name."""
    with inspection.named(source):
        yield from evaluation_batches(source, recipe, size).as_numpy_iterator()


def steps_per_epoch(source, recipe):
    """Returns the number of full batches."""
    if len(source) < recipe.data.batch_size:
        raise ValueError(
            f"A batch of {recipe.data.batch_size} is larger than the training split: {len(source)} images."
        )
    return len(source) // recipe.data.batch_size


def read_files(paths, size, data=Data()):  # noqa: B008 - frozen
    """Returns image files as evaluation sees them, float32, `(files, height, width, channels)`.

    Raises:
        FileNotFoundError, ValueError: For a file that is not there or cannot be read, with its name.
    """
    found = []
    for path in paths:
        item = tf.constant(encoded(path))
        try:
            found.append(crops.evaluation_image(item, size, data).numpy())
        except tf.errors.OpError as error:
            raise ValueError(f"{str(path)!r} cannot be read as an image: {crops.reason(error)}") from None
    return np.stack(found)


def _chunk(batch, size):
    """Returns how many images are made in one piece: the largest divisor of the batch that is not too much memory."""
    most = max(CHUNK // math.prod(size), 1)
    return max(n for n in range(1, min(batch, most) + 1) if batch % n == 0)


def _parallel(dataset, function):
    return dataset.map(function, num_parallel_calls=os.cpu_count(), deterministic=True)


def _ahead(batches, count):
    """Makes batches ahead of their reader, and tells how many there are.

    Without tf.data's tuner: its thread sleeps for 10, 20, 40 ... ms, up to a minute, and an iterator that has come to
    its end waits for it, by up to the time that the pass took.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = batches.apply(tf.data.experimental.assert_cardinality(count))
    return batches.prefetch(4).with_options(options)


def _reader(source, size, data, settings=None):
    """Returns the function from a source's keys to (images, one-hot labels).

    With `settings`, an `Augment`, images are cut as for training, by numbers that the function takes besides.
    """
    look_up, cut = source.reader(), settings is not None and settings.crop in crops.CUTS

    def one(item, numbers):
        if settings is None:
            return crops.evaluation_image(item, size, data)
        return crops.training_image(item, size, data, settings, numbers)

    def read(keys, numbers=None):
        items, labels = look_up(keys)
        if items.dtype != tf.string and items.shape[1:] == size and not cut:
            images = tf.cast(items, "float32")
        else:
            numbers = tf.zeros((tf.size(keys), 4)) if numbers is None else numbers
            images = tf.map_fn(lambda pair: one(*pair), (items, numbers), fn_output_signature=tf.float32)
        return tf.ensure_shape(images, (None, *size)), tf.one_hot(labels, len(source.class_names))

    return read
