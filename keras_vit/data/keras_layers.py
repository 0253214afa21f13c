"""Keras preprocessing layers in a pipeline, so that they draw the same in every run."""

import tensorflow as tf


def apply_layers(layers, seed, images, labels, at):
    """Calls Keras preprocessing layers on a batch, one after the other.

    A layer's own random state, which counts its calls, is set from where the batch lies in the run, so that a
    resumed run draws what it would have drawn. Batches must come one at a time.

    Args:
        layers: Layers that keep the shape of images and need no labels, of `keras.layers` or `keras_cv.layers`.
        seed: Integer, of the run.
        images: float32 tensor, `(batch, height, width, channels)`.
        labels: Left as they are.
        at: int64 tensor, `(batch, 2)`: epoch, and position in it, of each image.

    Returns:
        Images, labels and `at`.
    """
    for number, layer in enumerate(layers):
        state = tf.random.fold_in(tf.cast(at[0], "int64"), seed + number)
        for generator in generators(layer):
            generator.state.assign(tf.cast(tf.abs(state), generator.state.dtype))
        images = tf.ensure_shape(tf.cast(layer(images, training=True), "float32"), images.shape)
    return images, labels, at


def generators(layer):
    """Returns every seed generator of a layer and of those inside it."""
    found = []
    for inner in layer._flatten_layers():
        for value in vars(inner).values():
            if type(value).__name__ == "SeedGenerator" and not any(value is other for other in found):
                found.append(value)
    return found
