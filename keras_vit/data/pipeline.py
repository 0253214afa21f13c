"""From a source to batches. The order and the augmentation are pure functions of (seed, epoch, step)."""

import os

import numpy as np
import tensorflow as tf

from keras_vit.data.augment import augment


def training_batches(source, recipe, size, *, first_epoch=None):
    """Returns shuffled, augmented batches.

    The order of an epoch is a pseudo-random permutation, computed and not stored, so that a run can
    start at any epoch and see what it would have seen.

    Args:
        source: A `Source`.
        recipe: A `Recipe`; its `data.batch_size`, `augment`, `optim.epochs` and `seed` are read.
        size: `(height, width, channels)` of the images.
        first_epoch: If given, one pass holds all epochs from that one on, for `fit(steps_per_epoch=...)`.
            Otherwise each pass over the dataset is one epoch, every time in a new order.

    Returns:
        A `tf.data.Dataset` of `(images, labels)`: float32 `(batch, height, width, channels)`, 0..255,
        and one-hot float32 `(batch, classes)`. Batches are full; what is left over is dropped.

    Raises:
        ValueError: If there are fewer images than one batch holds.
    """
    batch_size, count, seed = recipe.data.batch_size, len(source), recipe.seed
    steps = steps_per_epoch(source, recipe)
    read = _reader(source, size)

    def batch(epoch, step):
        position = step * batch_size + tf.range(batch_size, dtype="int64")
        index = tf.random.experimental.index_shuffle(position, tf.stack([seed, epoch]), count - 1)
        images, labels = read(index)
        return augment(images, recipe.augment, tf.stack([epoch * steps + step, seed])), labels

    if first_epoch is None:
        epochs = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).take(1)
    else:
        epochs = tf.data.Dataset.range(first_epoch, recipe.optim.epochs)
    order = epochs.flat_map(lambda epoch: tf.data.Dataset.range(steps).map(lambda step: (epoch, step)))
    order = order.apply(
        tf.data.experimental.assert_cardinality(
            steps * (1 if first_epoch is None else recipe.optim.epochs - first_epoch)
        )
    )
    return _mapped(order, batch)


def evaluation_batches(source, recipe, size):
    """Returns every image once, in order; the last batch may be smaller. Like `training_batches` otherwise."""
    index = tf.data.Dataset.range(len(source)).batch(recipe.data.batch_size)
    return _mapped(index, _reader(source, size))


def steps_per_epoch(source, recipe):
    """Returns the number of full batches."""
    if len(source) < recipe.data.batch_size:
        raise ValueError(
            f"A batch of {recipe.data.batch_size} is larger than the training split: {len(source)} images."
        )
    return len(source) // recipe.data.batch_size


def decode(encoded, channels):
    """Decodes a JPEG, PNG, BMP, GIF (first frame) or WebP to uint8 `(height, width, channels)`.

    Palettes, CMYK, alpha (dropped) and 16 bits (the upper eight) are brought to plain pixels. A rotation
    noted in EXIF is not applied.
    """
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape((None, None, 3))
    return tf.image.rgb_to_grayscale(image) if channels == 1 else image


def read_files(paths, size):
    """Returns image files as float32 pixels, `(files, height, width, channels)`, resized to `size`.

    Raises:
        FileNotFoundError, ValueError: For a file that is not there or cannot be read, with its name.
    """
    images = []
    for path in paths:
        try:
            images.append(resize(decode(tf.io.read_file(str(path)), size[2]), size[:2]).numpy())
        except tf.errors.NotFoundError:
            raise FileNotFoundError(f"There is no file {str(path)!r}.") from None
        except tf.errors.OpError as error:
            raise ValueError(f"{str(path)!r} cannot be read as an image: {reason(error)}") from None
    return np.stack(images)


def reason(error):
    """Returns the first line of a TensorFlow error, without its trail."""
    return str(error).split("} ")[-1].split(" [Op:")[0].strip().splitlines()[0]


def resize(image, size):
    """Resizes to `(height, width)`, bilinear with antialias; float32, 0..255."""
    return tf.clip_by_value(tf.image.resize(image, size, antialias=True), 0.0, 255.0)


def _mapped(dataset, function):
    """Returns `dataset.map(function)`, in parallel and ahead of its reader.

    Without tf.data's tuner: its thread sleeps for 10, 20, 40 ... ms, up to a minute, and an iterator that has come to
    its end waits for it, by up to the time that the pass took.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = dataset.map(function, num_parallel_calls=os.cpu_count(), deterministic=True)
    return dataset.prefetch(2 * os.cpu_count()).with_options(options)


def _reader(source, size):
    """Returns the function from a vector of indices to (images, one-hot labels)."""
    images, labels = tf.constant(source.images), tf.constant(source.labels)
    classes, (height, width, channels) = len(source.class_names), size

    def decode_one(index):
        encoded = tf.io.read_file(images[index]) if source.files else images[index]
        return resize(decode(encoded, channels), (height, width))

    def read(index):
        if images.dtype == tf.string:
            batch = tf.map_fn(decode_one, index, fn_output_signature=tf.float32)
        else:
            batch = tf.cast(tf.gather(images, index), "float32")
            batch = batch if batch.shape[1:3] == (height, width) else resize(batch, (height, width))
        batch = tf.ensure_shape(batch, (None, height, width, channels))
        return batch, tf.one_hot(tf.gather(labels, index), classes)

    return read
