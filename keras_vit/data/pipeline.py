"""From a source to batches: shuffle, read and crop, augment; the task makes of them what its model learns from.

Order and augmentation are pure functions of (seed, epoch, position in the epoch), so a run can start at any step and
sees the batches that it would have seen.
"""

import dataclasses
import math

import tensorflow as tf

from keras_vit.data import deep_source, inspection
from keras_vit.data.augment import crops
from keras_vit.data.augment.augment import augment
from keras_vit.data.augment.cuts import BOXES
from keras_vit.data.augment.keras_layers import layers_function
from keras_vit.data.draws import draws
from keras_vit.data.orientation import orientations
from keras_vit.data.readers.image_files import read_files as read_files
from keras_vit.data.targets import KINDS
from keras_vit.utils.cores import cores

CHUNK = 2**21  # pixel values that are processed at once


def training_batches(source, recipe, size, *, first_epoch=None, first_step=0, share=(0, 1)):
    """Returns shuffled, augmented batches.

    Args:
        source: Result of `sources.load`.
        recipe: A `Recipe`, whose task has met the source; its `data`, `augment`, `optim.epochs` and `seed` are read.
        size: `(height, width, channels)` of the images that the model takes; `(length,)` of texts.
        first_epoch: If given, one pass contains all epochs from this one on, for `fit(steps_per_epoch=...)`.
            Otherwise each pass over the dataset is one epoch, every time in a new order.
        first_step: Steps of the first epoch to skip.
        share: `(index, count)` for several processes: the part of every batch at `index`, out of `count` equal parts.

    Returns:
        A `tf.data.Dataset` of `(x, y)`, as `recipe.task.batch` returns them. Batches are full; the rest of an epoch is
        dropped.

    Raises:
        ValueError: If there are fewer images than one batch, or the parts of a batch would not be equal.
    """
    batch, seed, settings = recipe.data.batch_size, recipe.seed, recipe.augment
    steps, part = steps_per_epoch(source, recipe), batch // share[1]
    if batch % share[1]:
        raise ValueError(f"A batch must divide into equal parts. Received: {batch} images among {share[1]} processes")
    task, size, channels = recipe.task, recipe.task.data_shape(size), size[-1] if recipe.task.clips else None
    chunk = _chunk(part, size)
    reader = _reader(source, size, recipe.data, settings)
    moves = dataclasses.replace(settings, flip=False) if recipe.data.resize == "pad" else settings  # before that

    def shuffled_keys(epoch):  # chunks of other processes, and skipped steps, are dropped before any image is read
        chunks = source.shuffled(seed, epoch, chunk).take(steps * batch // chunk).enumerate()
        own_chunks = chunks.filter(lambda number, _: number * chunk % batch // part == share[0])
        return own_chunks.map(lambda number, keys: (epoch, number * chunk, keys))

    def read_and_augment(epoch, first, keys):
        draw = draws(seed, epoch, first)
        examples = reader(keys, draw("crop", chunk, 4))
        changed = examples if task.of_texts else augment(examples, moves, draw, channels)
        return changed, tf.tile([[epoch, first]], (chunk, 1))

    def make_batch(examples, at):
        own = tf.random.fold_in(at[0], seed)
        return task.batch(task.prepare(deep_source.in_units(examples, recipe.data), own), settings, own)

    if first_epoch is None:
        epochs = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).take(1)
    else:
        epochs = tf.data.Dataset.range(first_epoch, recipe.optim.epochs)
    keys = epochs.flat_map(shuffled_keys).skip(first_step * (part // chunk))
    batches = _parallel(keys, read_and_augment).rebatch(part, drop_remainder=True)
    if settings.layers:
        batches = batches.map(layers_function(settings.layers, seed, tuple(batches.element_spec[0])))
    batches = batches.map(make_batch, num_parallel_calls=2, deterministic=True)
    return _prefetch(batches, steps * int(epochs.cardinality()) - first_step)


def evaluation_batches(source, recipe, size, batch=None):
    """Returns every image once, in order; the last batch may be smaller. Otherwise like `training_batches`.

    `batch` is the batch size; the recipe's if `None`.
    """
    batch, task = batch or recipe.data.batch_size, recipe.task

    def make_batch(examples, seed):
        return task.batch(task.prepare(examples, seed), None, seed)

    return _in_order(source, recipe, size, batch, make_batch)


def evaluation_arrays(source, recipe, size):
    """Yields every image once, in order, with its targets as the data have them.

    Args:
        source: Result of `sources.load`.
        recipe: A `Recipe`; its `task` and `data` are read.
        size: `(height, width, channels)` of the images that the model takes.

    Yields:
        Dictionaries of NumPy arrays: `"images"`, float32 `(batch, height, width, channels)`, 0..255; `"labels"`,
        integers; `"segmentation_masks"`, at their own size, PNG bytes or uint8 `(batch, rows, columns, 1)`: see
        `images.mask_pixels`; so `"instance_masks"`, PNG bytes or int32: see `instance_maps.pixels`.

    Raises:
        ValueError: If a file can no longer be read, with its name.
    """
    batches = _in_order(source, recipe, size, recipe.data.batch_size, recipe.task.prepare, raw=True)
    with inspection.named(source):
        yield from batches.as_numpy_iterator()


def steps_per_epoch(source, recipe):
    """Returns the number of full batches."""
    if len(source) < recipe.data.batch_size:
        raise ValueError(
            "The training split must have as many images as one batch, or more. "
            f"Received: {len(source)} images, data.batch_size={recipe.data.batch_size}"
        )
    steps, optim = len(source) // recipe.data.batch_size, recipe.optim
    if optim.accumulate > optim.epochs * steps:
        raise ValueError(
            f"optim.accumulate must be at most {optim.epochs * steps}, the batches of the whole run. "
            f"Received: {optim.accumulate}"
        )
    return steps


def _in_order(source, recipe, size, batch, finish, raw=False):
    """Returns every example once, in batches; `finish(examples, seed)` makes of each what the dataset yields."""

    def finished(number, examples):
        return finish(deep_source.in_units(examples, recipe.data), tf.stack([tf.zeros((), "int64"), number]))

    size = recipe.task.data_shape(size)
    keys = source.in_order(_chunk(batch, size))
    batches = _parallel(keys, _reader(source, size, recipe.data, raw=raw)).rebatch(batch)
    batches = batches.enumerate().map(finished, num_parallel_calls=2, deterministic=True)
    return _prefetch(batches, -(-len(source) // batch))


def _reader(source, size, data, settings=None, raw=False):
    """Returns a function from a source's keys to examples: a dictionary of batches of images and each target.

    With `settings`, an `Augment`, images are cropped for training, by random numbers that the function takes too. What
    has a place in its image is cut with it; with `raw` it stays as it is.
    """
    look_up = source.reader()
    if len(size) == 1:  # ids of texts
        return lambda keys, numbers=None: look_up(keys)
    cut = settings.crop in BOXES if settings else isinstance(data.resize, (int, tuple))  # even at the right size
    pads = data.resize == "pad" and not (settings and cut)

    def bring_to_size(items, numbers, orientation=None):
        items = deep_source.opened(items, source, data, size[2])
        if settings is None:
            return crops.evaluation_example(items, size, data, orientation)
        return crops.training_example(items, size, data, settings, numbers, orientation)

    def fits(name, item):
        if name == "bounding_boxes":  # in shares of the image
            return True
        return item.dtype != tf.string and item.shape[1:] == (size if name == "images" else (*size[:2], 1))

    def read_examples(keys, numbers=None):
        items = look_up(keys)
        followed = {"references"}  # which the model sees too
        followed |= {"bounding_boxes"} if pads else set()  # shares of what the model sees, whose sides are others then
        placed = {n: i for n, i in items.items() if n == "images" or (KINDS[n].cut and (not raw or n in followed))}
        if all(fits(*pair) for pair in placed.items()) and not (cut or pads):
            seen = deep_source.opened(placed, source, data, size[2])
            examples = {**placed, "images": tf.cast(seen["images"], "float32")}
        else:
            numbers = tf.zeros((tf.size(keys), 4)) if numbers is None else numbers
            types = {name: KINDS[name].pixels for name in placed}
            known = [orientations(placed["images"])] if deep_source.are_encoded(placed["images"], source) else []
            examples = tf.map_fn(
                lambda each: bring_to_size(*each), (placed, numbers, *known), fn_output_signature=types
            )
        examples["images"] = tf.ensure_shape(examples["images"], (None, *size))
        return {**items, **examples}

    return read_examples


def _chunk(batch, size):
    """Returns how many images are processed at once: the largest divisor of the batch that needs little memory."""
    most = max(CHUNK // math.prod(size), 1)
    return max(n for n in range(1, min(batch, most) + 1) if batch % n == 0)


def _parallel(dataset, function):
    plain = tf.autograph.experimental.do_not_convert(function)  # to convert its source takes seconds at each start
    return dataset.map(plain, num_parallel_calls=cores(), deterministic=True)


def _prefetch(batches, count):
    """Prepares batches ahead of their reader, and declares their number.

    Without tf.data's autotuning: its thread sleeps for 10, 20, 40 ... ms, up to a minute, and an iterator at its end
    waits for it, by up to the time that the pass took.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = batches.apply(tf.data.experimental.assert_cardinality(count))
    return batches.prefetch(4).with_options(options)
