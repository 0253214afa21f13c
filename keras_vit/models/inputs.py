"""What a model takes: images, clips, ids of texts, or several by name. A kind of input is a row of `TYPES`."""

import keras

from keras_vit.models.backbone import image_tower, input_shape_of, keeper
from keras_vit.utils.keras_private import sublayers

IMAGES, CLIPS = 4, 5  # axes of a batch of images, and of clips
TYPES = {  # of inputs in exported files
    "images": "float32",
    "references": "float32",
    "clips": "float32",
    "texts": "int32",
    "times": "float32",
    "labels": "int32",
}
PIXELS = {IMAGES: "images", CLIPS: "clips"}
AXES = {"texts": (2, True), "times": (1, False), "labels": (1, True)}  # of the others' batches, and whether integers
NAMED = {"references": "images"}  # inputs next to others of the same axes, known by their names
ALONE = {"images", "clips", "texts"}  # one of which every model takes


def inputs_of(model):
    """Returns what a model takes, by the names of exported files: a dictionary from `TYPES` to shapes without batch.

    One input is known by its axes, of several each by its name; clips with texts are called `"images"`. Empty for any
    other model, and for one of unknown size.
    """
    tensors = list(getattr(model, "inputs", None) or ())
    by_name = getattr(model, "input", None) if len(tensors) > 1 else {_kind(x): x for x in tensors}
    fits = isinstance(by_name, dict) and all(name and _fits(name, _kind(x)) for name, x in by_name.items())
    shapes = {name: tuple(by_name[name].shape[1:]) for name in TYPES if name in by_name} if fits else {}
    complete = ALONE & set(shapes) and not any(None in shape for shape in shapes.values())
    return shapes if complete else {}


def _fits(name, kind):
    """Returns whether an input of a kind may have a name."""
    return kind == NAMED.get(name, name) or (name, kind) == (PIXELS[IMAGES], PIXELS[CLIPS])


def _kind(x):
    """Returns the name of an input's kind, or `None`."""
    form = (len(x.shape), "int" in x.dtype)
    return PIXELS.get(form[0]) or next((name for name in AXES if AXES[name] == form), None)


def image_shape(model):
    """Returns `(height, width, channels)` of the images that a model takes, alone or among other inputs.

    Of a model of clips, `(frames, height, width, channels)`; of one that translates, `(length,)` of its sources.
    """
    return tuple(input_shape_of(model)[1:])


def table_of(model):
    """Returns the layer of a model that looks up its words, classes or jobs, and the number of its rows.

    `(None, 0)` without one.
    """
    names = ("vocabulary", "input_dim", "jobs")
    counts = ((layer, next((n for name in names if (n := getattr(layer, name, 0))), 0)) for layer in sublayers(model))
    return next(((layer, rows) for layer, rows in counts if rows), (None, 0))


def metadata_of(model):
    """Returns the metadata that are saved with a model, or with its image tower: a dictionary that may be changed."""
    return keeper(image_tower(model)).metadata


def fed(examples, inputs):
    """Returns what a model is called with: its one input, or a dictionary of all its inputs.

    Args:
        examples: Dictionary of arrays or tensors, an entry for each image or text.
        inputs: Names: `inputs` of the task, or `inputs_of` the model.
    """
    return {name: examples[name] for name in inputs} if len(inputs) > 1 else examples[next(iter(inputs))]


def named(examples, inputs):
    """Returns what a model is called with as a dictionary: the inverse of `fed`."""
    return examples if isinstance(examples, dict) else {next(iter(inputs)): examples}


def first(examples, count):
    """Returns the first examples of what a model is called with."""
    return keras.tree.map_structure(lambda x: x[:count], examples)


def count(examples):
    """Returns the number of examples in what a model is called with."""
    return len(keras.tree.flatten(examples)[0])
