"""Conversion of recipes to plain values for JSON, and back."""

import dataclasses

import keras

from keras_vit.config.parts import Augment, Data, Optim, Reached, Recipe, Weights
from keras_vit.config.removed import without_removed
from keras_vit.tasks.base import TASKS, UnknownTaskError
from keras_vit.utils.checked import applied

KIND = "kind"  # the key of a task's class; an option of this name is `OPTION`
OPTION = "kind_option"
PARTS = {"data": Data, "augment": Augment, "optim": Optim, "weights": Weights, "reached": Reached}


def to_dict(recipe):
    """Returns a recipe as nested dictionaries for JSON."""
    # Keras numbers the names of layers in each process.
    layers = [without("name", keras.saving.serialize_keras_object(layer)) for layer in recipe.augment.layers]
    plain = dataclasses.replace(recipe, augment=dataclasses.replace(recipe.augment, layers=()))
    values = dataclasses.asdict(plain)
    values["augment"]["layers"] = layers
    values["data"] = {name: values["data"][name] for name in applied(recipe.data)}
    named = {OPTION if name == KIND else name: values["task"][name] for name in applied(recipe.task)}
    values["task"] = {KIND: type(recipe.task).__name__, **named}
    return values


def from_dict(values):
    """Returns the recipe from the dictionaries of `to_dict`, also after a round trip through JSON.

    Raises:
        UnknownTaskError: For a task whose class, such as your own, is not defined yet.
    """
    values = dict(values)
    for part, kind in PARTS.items():
        if values.get(part) is not None:
            fields = without_removed(part, dict(values[part]))
            if "layers" in fields:
                fields["layers"] = [keras.saving.deserialize_keras_object(layer) for layer in fields["layers"]]
            values[part] = kind(**_tuples(fields))
    if "task" in values:
        values["task"] = _task(**_tuples(values["task"]))
    return Recipe(**_tuples(values))


def _task(kind, **fields):
    if kind not in TASKS:
        raise UnknownTaskError(
            f"The task {kind!r} is defined in a recipe file of your own. Pass that file in place of the run, such as "
            "'toy.py' for 'runs/toy', or call keras_vit.load_recipe on it first."
        )
    return TASKS[kind](**{KIND if name == OPTION else name: value for name, value in fields.items()})


def without(key, value):
    """Returns nested dictionaries and lists without a key, at any depth."""
    if isinstance(value, dict):
        return {name: without(key, inner) for name, inner in value.items() if name != key}
    return [without(key, inner) for inner in value] if isinstance(value, list) else value


def _tuples(fields):
    return {name: _tuple(value) for name, value in fields.items()}


def _tuple(value):
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
