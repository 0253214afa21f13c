"""Feeds a model: on several devices of `keras.distribution`, by batches that they divide."""

import keras
import numpy as np


def replicas():
    """Returns among how many devices `keras.distribution` divides a batch, on JAX; else 1."""
    distribution = keras.distribution.distribution()
    if distribution is None or keras.backend.backend() != "jax":
        return 1
    mesh = distribution.device_mesh
    return mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]


def run(model, inputs):
    """Returns a model's outputs for one batch of any size, as an array.

    Args:
        model: A Keras model of one output, or a function.
        inputs: Array, or a dictionary of arrays, with an entry for each image.
    """
    count, inputs = _padded(inputs)  # cut: each TensorFlow device returns all
    return keras.ops.convert_to_numpy(getattr(model, "predict_on_batch", model)(inputs))[:count]


def predict(model, inputs, batch_size=32):
    """Returns a model's outputs for any number of images, `batch_size` at once or a few more; arguments as in `run`."""
    count, inputs = _padded(inputs)
    return model.predict(inputs, -(-batch_size // replicas()) * replicas(), verbose=0)[:count]


def _padded(inputs):
    """Returns the number of images, and the inputs with the last image repeated until the devices divide that number.

    A number that they do not divide is an error of Keras, after which every call of the model fails.
    """
    count = len(keras.tree.flatten(inputs)[0])
    missing = -count % replicas()
    if not missing:
        return count, inputs
    return count, keras.tree.map_structure(lambda x: np.concatenate([x, np.repeat(x[-1:], missing, axis=0)]), inputs)
