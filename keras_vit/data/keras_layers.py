"""Keras preprocessing layers in a pipeline, so that they draw the same in every run.

A layer counts its draws, in Keras's seed generators or in TensorFlow's. Before each batch those are set from where the
batch lies in the run, so that a resumed run draws what it would have drawn.
"""

import contextlib
import inspect
import random
from unittest import mock

import keras
import tensorflow as tf

from keras_vit.keras_private import sublayers

NEED_LABELS = ("MixUp", "CutMix", "FourierMix", "Mosaic")  # of Keras and KerasCV


def layers_function(layers, seed):
    """Returns a function that calls Keras preprocessing layers on a batch, one after the other; one batch at a time.

    Args:
        layers: Layers that keep the shape of images and need no labels, of `keras.layers` or `keras_cv.layers`.
        seed: Integer, of the run.

    Returns:
        A function from images (float32, `(batch, height, width, channels)`), labels, and the epoch and position of each
        image (int64, `(batch, 2)`) to the same.

    Raises:
        TypeError: For what is no layer.
        ValueError: For a layer that would have to change labels too.
    """
    for layer in layers:
        if not isinstance(layer, keras.Layer):
            raise TypeError(f"Augment.layers holds Keras layers. Received: {layer!r}")
        if any(type(inner).__name__ in NEED_LABELS for inner in sublayers(layer)):
            raise ValueError(f"Augment.mixup and Augment.cutmix mix labels too. Received: the layer {layer.name!r}")
    counts, stray = generators(layers), tf.random.Generator.from_seed(0)

    def apply(images, labels, at):
        key = tf.random.fold_in(at[0], seed)
        for number, generator in enumerate([*counts, stray]):
            start = tf.random.stateless_uniform((), tf.random.fold_in(key, number), 0, 2**31 - 1, "int64")
            if isinstance(generator, tf.random.Generator):
                generator.reset_from_key_counter(start, tf.constant([0, 0], "int64"))
            else:
                generator.state.assign(tf.cast(tf.stack([start, 0]), generator.state.dtype))
        with _drawing_from(stray, seed):
            for layer in layers:
                images = tf.ensure_shape(tf.cast(layer(images, training=True), "float32"), images.shape)
        return images, labels, at

    return apply


def generators(layers):
    """Returns every generator of random numbers in some layers and those inside them.

    An unseeded layer of KerasCV shares TensorFlow's global generator with all the program; it gets its own.
    """
    found = {}
    for inner in (inner for layer in layers for inner in sublayers(layer)):
        held = dict(vars(inner))
        if keras.backend.backend() != "tensorflow" and hasattr(inner, "generator"):
            inner.backend.set_backend("tensorflow")  # in a pipeline the layer makes itself another one
            held["generator"] = inner._get_seed_generator("tensorflow")
            inner.backend.reset()
        for name, value in held.items():
            if value is tf.random.get_global_generator():
                value = tf.random.Generator.from_seed(0)
                object.__setattr__(inner, name, value)
            if isinstance(value, (keras.random.SeedGenerator, tf.random.Generator)):
                found[id(value)] = value
    return list(found.values())


@contextlib.contextmanager
def _drawing_from(generator, seed):
    """A block that traces layers, in which what draws from a state that cannot be set draws from the generator instead.

    That is `tf.random.uniform` and its like (in KerasCV's layers). Python's `random` (in Keras's AugMix) is set.
    """

    def drawn(name, function):
        names = inspect.signature(getattr(tf.random, name))

        def call(*args, **settings):
            given = {**names.bind(*args, **settings).arguments, "seed": generator.make_seeds()[:, 0]}
            if name == "gamma":  # here the shape of `alpha` is not counted in
                given["shape"] = tf.concat([tf.cast(given["shape"], "int32"), tf.shape(given["alpha"])], 0)
            return function(**given)

        return call

    functions = {name: getattr(tf.random, f"stateless_{name}") for name in ("uniform", "normal", "gamma")}
    functions["shuffle"] = tf.random.experimental.stateless_shuffle
    state = random.getstate()
    random.seed(seed)
    try:
        with mock.patch.multiple(tf.random, **{name: drawn(name, function) for name, function in functions.items()}):
            yield
    finally:
        random.setstate(state)
