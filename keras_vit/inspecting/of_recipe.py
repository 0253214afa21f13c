"""The pictures of a recipe's data, with their labels and splits, as training reads them."""

import dataclasses
import os
import pathlib

import numpy as np

from keras_vit.inspecting import layout
from keras_vit.inspecting.layout import OTHERS
from keras_vit.inspecting.pictures import Pictures
from keras_vit.utils.folders import in_folder

ROLES = ("train", "validation", "test")


def of_recipe(recipe):
    """Returns the `Pictures` of a recipe's training, validation and test data.

    Args:
        recipe: A `Recipe`, its name, or its file.
    """
    from keras_vit.config import Recipe
    from keras_vit.config.cookbook import load_recipe

    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    if recipe.task.of_texts or recipe.task.clips is not None:
        raise ValueError(f"The recipe must be of images. Received: {recipe.name!r}, whose data are texts or clips")
    parts, names, images, labels, splits = _parts(recipe), [], [], [], []
    folder = folder_of(recipe)
    for role, part in parts.items():
        names += [_below(path, folder) if folder else f"{role}:{i}" for i, path in enumerate(part.images)]
        images += [*part.images]
        classes = part.targets.get("labels")
        labels += [None] * len(part) if classes is None else [part.class_names[i] for i in classes]
        splits += [role] * len(part)
    unread = _unread(folder, {*names}) if folder else {}
    pictures = Pictures(names, images, bool(folder), folder, unread=unread).labeled(labels).divided(splits)
    return layout.with_tables(pictures, recipe.data.columns)[0] if folder else pictures


def _parts(recipe):
    """Returns the different splits of a recipe, `Source`s by their roles."""
    from keras_vit.data import sources

    data = dataclasses.replace(recipe.data, bad_images="skip")
    words = {}
    for role in ROLES:
        if getattr(data, role) not in words.values():
            words[role] = getattr(data, role)
    task = recipe.task
    parts = {role: sources.load(data, word, task.targets, (), task.columns) for role, word in words.items()}
    if not all(isinstance(part, sources.Source) for part in parts.values()):
        raise ValueError(
            f"The data must fit into memory, or be files. Received: {data.source!r}, which is read from its records"
        )
    return {role: _once(part) if part.files else part for role, part in parts.items()}


def _once(part):
    """Returns a source of files with each once: a picture with several texts is in several rows."""
    return part.take(np.sort(np.unique(part.images.astype(str), return_index=True)[1]))


def folder_of(recipe):
    """Returns the folder of a recipe's files, a path; `None` for pictures in memory."""
    kind, _, rest = recipe.data.source.partition(":")
    path = pathlib.Path(rest).expanduser()
    return (path if path.is_dir() else path.parent) if kind == "folder" else None


def _below(path, folder):
    return pathlib.PurePath(os.path.relpath(path, folder)).as_posix()


def _unread(folder, names):
    """Returns the pictures of a folder that cannot be read, and why, but those of `names` and what is no picture."""
    from keras_vit.data import inspection

    others = [path for path in map(str, in_folder(folder)) if _below(path, folder) not in names]
    others = [path for path in others if not OTHERS & {*pathlib.PurePath(_below(path, folder)).parts[:-1]}]
    return {_below(others[i], folder): why for i, why in inspection.inspect_all(others).faults.items()}
