"""Changes to a recipe by dotted names, from Python or from the command line."""

import ast
import dataclasses
import inspect
import pathlib
import shlex

from keras_vit.config import removed
from keras_vit.models.options import OPTIONS, merged
from keras_vit.models.vit import vit
from keras_vit.utils import checks

TOP = ("seed", "name", "distribute", "model_parallel")
PARTS = ("task", "data", "augment", "optim")
KINDS = ("folder:", "tfds:", "table:")  # prefixes of a source of data
OTHERS = {  # names in other libraries, and the names here
    "lr": "learning_rate",
    "wd": "weight_decay",
    "opt": "optimizer",
    "sched": "schedule",
    "epoch": "epochs",
    "num_epochs": "epochs",
    "num_train_epochs": "epochs",
    "warmup": "warmup_epochs",
    "clip_grad": "clip_norm",
    "bs": "batch_size",
    "batch": "batch_size",
    "data": "source",
    "dataset": "source",
    "data_dir": "source",
    "data_path": "source",
    "val": "validation",
    "smoothing": "label_smoothing",
    "drop_path": "stochastic_depth",
    "drop": "dropout",
    "img_size": "image_size",
    "input_size": "image_size",
    "resolution": "image_size",
    "layers": "depth",
    "heads": "num_heads",
    "model": "variant",
    "pretrained": "weights",
}


def override(recipe, changes):
    """Returns a recipe with changed options, and without its `reached`.

    If `model.weights` determine the variant, as a file, a run, shipped weights or a published name such as
    `"B/16-augreg-i21k"` do, `model.variant` becomes `None`, unless it is changed too.

    Args:
        recipe: A `Recipe`.
        changes: Dictionary from dotted names to values, such as `{"optim.epochs": 3, "model.width": 96}`.

    Raises:
        ValueError: For an unknown name (with similar ones), or a value outside its range.
        TypeError: For a value of the wrong type.
    """
    if not isinstance(changes, dict) or not all(isinstance(name, str) for name in changes):
        raise TypeError(
            f"Changes must be a dictionary, such as {{'optim.epochs': 3}}. Received: {checks.shown(changes)}"
        )
    for name, value in changes.items():
        part, _, key = name.partition(".")
        if (part, key) == ("model", "weights") and _are_own(value) and "model.variant" not in changes:
            recipe = dataclasses.replace(recipe, model={**recipe.model, "variant": None})  # the variant of the weights
        argument, dot, option = key.partition(".")
        if part == "model" and argument in OPTIONS and option in OPTIONS[argument]:
            recipe = dataclasses.replace(recipe, model=merged(recipe.model, {argument: {option: value}}))
        elif part == "model" and key and not dot:
            recipe = dataclasses.replace(recipe, model={**recipe.model, key: value})
        elif part == "task" and argument == "head" and option in _head_options(recipe):
            recipe = dataclasses.replace(recipe, task=recipe.task.with_head_option(option, value))
        elif part in PARTS and key in _fields(recipe, part):
            recipe = dataclasses.replace(recipe, **{part: dataclasses.replace(getattr(recipe, part), **{key: value})})
        elif name in TOP:
            recipe = dataclasses.replace(recipe, **{name: value})
        else:
            raise ValueError(f"A recipe has no option {name!r}. {_meant(name, recipe)}")
    return dataclasses.replace(recipe, reached=None) if changes else recipe


def _are_own(weights):
    """Returns whether weights determine the variant: a file, an address, or a published name with the variant."""
    from keras_vit.checkpoints.pretrained import list_checkpoints, location

    if weights is None:
        return False
    return location(weights) is not None or any(row.name == str(weights) for row in list_checkpoints())


def names(recipe):
    """Returns all dotted names that `override` accepts; arguments of the model only if the recipe sets them."""
    parts = [f"{part}.{name}" for part in PARTS for name in _fields(recipe, part)]
    options = [f"{argument}.{option}" for argument in OPTIONS for option in OPTIONS[argument]]
    parts += [f"task.head.{option}" for option in _head_options(recipe)]
    return [*TOP, *parts, *(f"model.{key}" for key in (*recipe.model, *options))]


def called(name, recipe):
    """Returns the dotted names of a recipe's options that a name can mean, the least nested first.

    The last part of a dotted name must equal the last part of `name`, or its translation from another library.
    """
    arguments = [f"model.{each}" for each in inspect.signature(vit).parameters]
    candidates, last = dict.fromkeys([*names(recipe), *arguments]), name.rpartition(".")[2]
    matches = [each for each in candidates if each.rpartition(".")[2] in (last, OTHERS.get(last))]
    return sorted(matches, key=lambda each: each.count("."))


def _meant(name, recipe):
    """Returns a hint for an unknown name: similar names, inside a dictionary of options only from this one."""
    if advice := removed.meant(name):
        return advice
    holder, _, option = name.rpartition(".")
    all_names = names(recipe)
    inside = [each.rpartition(".")[2] for each in all_names if each.rpartition(".")[0] == holder]
    if inside and "." in holder:
        return checks.near(option, inside)
    matches = called(name, recipe)
    return f"Did you mean {' or '.join(map(repr, matches))}?" if matches else checks.near(name, all_names)


def _head_options(recipe):
    return getattr(recipe.task, "head_options", {})


def _fields(recipe, part):
    return [field.name for field in dataclasses.fields(getattr(recipe, part))]


def parse(words):
    """Parses words such as `"optim.epochs=3"` into the dictionary that `override` takes.

    Values are Python literals (`3`, `1e-3`, `True`, `(28, 28)`, `None`); any other value is text.

    Raises:
        ValueError: For a word without `=`.
    """
    return {name: literal(text) for name, text in split(words).items()}


def split(words):
    """Splits words such as `"optim.epochs=3"` into a dictionary from names to texts."""
    texts = {}
    for word in words:
        name, equals, texts[name] = word.partition("=")
        if not equals:
            such = source_of(word) or "optim.epochs=3"
            raise ValueError(f"A change must be name=value, such as {such}. Received: {word!r}")
    return texts


def source_of(word):
    """Returns the change `data.source=...` for a word that is a source of data or a path; `None` for other words."""
    if not word.startswith(KINDS) and not (word and pathlib.Path(word).exists()):
        return None
    return shlex.quote(f"data.source={word if word.startswith(KINDS) else f'folder:{word}'}")


def literal(text):
    """Returns the value of a Python literal; any other text unchanged."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError, TypeError):
        return text


def words(recipe, base):
    """Returns words, as `parse` takes them, that change the recipe `base` into `recipe`."""
    changes = {name: getattr(recipe, name) for name in TOP if getattr(recipe, name) != getattr(base, name)}
    for part in PARTS:
        part_values, base_values = getattr(recipe, part), getattr(base, part)
        for name in _fields(recipe, part):
            if getattr(part_values, name) != getattr(base_values, name, None):
                changes[f"{part}.{name}"] = getattr(part_values, name)
    changes |= {f"model.{key}": value for key, value in recipe.model.items() if base.model.get(key) != value}
    return [f"{name}={value}" for name, value in changes.items()]
