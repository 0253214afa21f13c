"""Computes one symbolic tensor of a model from another."""

import keras

from keras_vit.utils.keras_private import call_of, place_of, takes_training


def between(start, end, value, training=False):
    """Computes a model's symbolic tensor `end` from a value of `start`, a symbolic tensor or several.

    It builds no `keras.Model` of that part, which would add nodes to the layers. With `training=None`, a symbolic value
    gives a part of another model, whose `fit` trains it.
    """
    pairs = zip(keras.tree.flatten(start), keras.tree.flatten(value), strict=True)
    return _computed(end, {id(tensor): one for tensor, one in pairs}, training)


def _computed(end, values, training):
    if id(end) in values:
        return values[id(end)]
    node, operation = call_of(end), call_of(end).operation
    if not node.input_tensors:
        raise ValueError("The blocks must form a single path. Received: a path around them")
    inputs = {id(tensor): _computed(tensor, values, training) for tensor in node.input_tensors}
    arguments, settings = node.arguments.fill_in(inputs)
    if takes_training(operation) and training is not None:
        settings["training"] = training
    value = keras.tree.flatten(operation(*arguments, **settings))[place_of(end)]
    values[id(end)] = value  # once, also where several layers take it
    return value
