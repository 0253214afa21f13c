"""From a source to batches. Order and augmentation are pure functions of (seed, epoch, position)."""

import functools
import math
import os

import numpy as np
import tensorflow as tf

from keras_vit.config import Data
from keras_vit.data import crops
from keras_vit.data.augment import augment
from keras_vit.data.draws import draws
from keras_vit.data.keras_layers import apply_layers
from keras_vit.data.mixing import mix

CHUNK = 2**21  # pixel values that are made in one piece


def training_batches(source, recipe, size, *, first_epoch=None, first_step=0, share=(0, 1)):
    """Returns shuffled, augmented batches.

    The order of an epoch is a pseudo-random permutation, computed and not stored, so that a run can
    start at any step and see what it would have seen.

    Args:
        source: A `Source`.
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
        ValueError: If there are fewer images than one batch holds.
    """
    batch, seed, settings = recipe.data.batch_size, recipe.seed, recipe.augment
    steps, part = steps_per_epoch(source, recipe), batch // share[1]
    chunk = _chunk(part, size)
    pieces = part // chunk  # of this process, a step
    read = _reader(source, size, recipe.data, settings)

    def chunks(epoch):
        number = tf.data.Dataset.range(steps * pieces)
        first = number.map(lambda i: (i // pieces) * batch + share[0] * part + (i % pieces) * chunk)
        return first.map(lambda position: (epoch, position))

    def make(epoch, first):
        position = first + tf.range(chunk, dtype="int64")
        index = tf.random.experimental.index_shuffle(position, tf.stack([seed, epoch]), len(source) - 1)
        draw = draws(seed, epoch, first)
        images, labels = read(index, draw("crop", chunk, 4))
        return augment(images, settings, draw), labels, tf.tile([[epoch, first]], (chunk, 1))

    if first_epoch is None:
        epochs, count = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).take(1), 1
    else:
        epochs, count = tf.data.Dataset.range(first_epoch, recipe.optim.epochs), recipe.optim.epochs - first_epoch
    order = epochs.flat_map(chunks).skip(first_step * pieces)
    batches = _parallel(order, make).rebatch(part, drop_remainder=True)
    if settings.layers:
        batches = batches.map(functools.partial(apply_layers, settings.layers, seed))
    batches = batches.map(lambda images, labels, at: mix(images, labels, settings, tf.random.fold_in(at[0], seed)))
    return _ahead(batches, steps * count - first_step)


def evaluation_batches(source, recipe, size):
    """Returns every image once, in order; the last batch may be smaller. Like `training_batches` otherwise."""
    batch = recipe.data.batch_size
    index = tf.data.Dataset.range(len(source)).batch(_chunk(batch, size))
    batches = _parallel(index, _reader(source, size, recipe.data)).rebatch(batch)
    return _ahead(batches, -(-len(source) // batch))


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
    images = []
    for path in paths:
        try:
            images.append(crops.evaluation_image(tf.io.read_file(str(path)), size, data).numpy())
        except tf.errors.NotFoundError:
            raise FileNotFoundError(f"There is no file {str(path)!r}.") from None
        except tf.errors.OpError as error:
            raise ValueError(f"{str(path)!r} cannot be read as an image: {crops.reason(error)}") from None
    return np.stack(images)


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
    """Returns the function from a vector of indices to (images, one-hot labels).

    With `settings`, an `Augment`, images are cut as for training, by numbers that the function takes besides.
    """
    images, labels = tf.constant(source.images), tf.constant(source.labels)
    as_they_are = images.dtype != tf.string and images.shape[1:] == size
    cut = settings is not None and settings.crop in ("inception", "resized")

    def one(arguments):
        index, numbers = arguments
        item = tf.io.read_file(images[index]) if source.files else images[index]
        if settings is None:
            return crops.evaluation_image(item, size, data)
        return crops.training_image(item, size, data, settings, numbers)

    def read(index, numbers=None):
        if as_they_are and not cut:
            batch = tf.cast(tf.gather(images, index), "float32")
        else:
            numbers = tf.zeros((tf.size(index), 4)) if numbers is None else numbers
            batch = tf.map_fn(one, (index, numbers), fn_output_signature=tf.float32)
        batch = tf.ensure_shape(batch, (None, *size))
        return batch, tf.one_hot(tf.gather(labels, index), len(source.class_names))

    return read
