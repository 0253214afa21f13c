"""A recipe as plain values for JSON, and back."""

import dataclasses

import keras

from keras_vit.config.changes import PARTS
from keras_vit.config.parts import Recipe


def to_dict(recipe):
    """Returns a recipe as nested dictionaries for JSON."""
    layers = [_unnamed(keras.saving.serialize_keras_object(layer)) for layer in recipe.augment.layers]
    plain = dataclasses.replace(recipe, augment=dataclasses.replace(recipe.augment, layers=()))
    values = dataclasses.asdict(plain)
    values["augment"]["layers"] = layers
    return values


def from_dict(values):
    """Returns the recipe from the dictionaries of `to_dict`, read from JSON or not."""
    values = dict(values)
    for part, kind in PARTS.items():
        if values.get(part) is not None:
            fields = dict(values[part])
            if "layers" in fields:
                fields["layers"] = [keras.saving.deserialize_keras_object(layer) for layer in fields["layers"]]
            values[part] = kind(**_tuples(fields))
    return Recipe(**_tuples(values))


def _unnamed(value):
    """Returns a Keras configuration without layer names, which Keras numbers in each process."""
    if isinstance(value, dict):
        return {key: _unnamed(inner) for key, inner in value.items() if key != "name"}
    return [_unnamed(inner) for inner in value] if isinstance(value, list) else value


def _tuples(fields):
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
