"""A model's logits and metrics on a source of labelled images."""

import keras
import numpy as np

from keras_vit.data import pipeline
from keras_vit.metrics import measure
from keras_vit.training.progress import counted


def measure_model(model, recipe, source):
    """Measures a model on a source: a dictionary from the recipe's `metrics` to numbers; see `keras_vit.metrics`."""
    return measure(recipe.metrics, *logits_of(predictor(model), recipe, source, model.input_shape[1:]))


def logits_of(function, recipe, source, size):
    """Runs a function from pixels to logits over a source.

    Returns:
        Logits, `(images, classes)`, and class indices, `(images,)`.
    """
    batches = counted(pipeline.evaluation_arrays(source, recipe, size), len(source), "evaluating")
    logits, labels = zip(*((function(images), labels.argmax(-1)) for images, labels in batches))
    return np.concatenate(logits), np.concatenate(labels)


def predictor(model):
    """Returns the function from pixels to a model's outputs, as arrays."""
    return lambda images: keras.ops.convert_to_numpy(model.predict_on_batch(images))
