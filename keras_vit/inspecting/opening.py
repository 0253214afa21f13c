"""What is inspected, from what the caller names: an index, a folder, or the data of a recipe."""

import dataclasses
import os
import pathlib

from keras_vit.frozen.index import Index, flat, load_index
from keras_vit.inspecting import layout
from keras_vit.inspecting.of_recipe import folder_of, of_recipe
from keras_vit.inspecting.pictures import Pictures
from keras_vit.utils import checks
from keras_vit.utils.folders import in_folder, is_image


def opened(source, labels=None, splits=None, recipe=None, folder=None):
    """Returns `Pictures`, and their vectors, `(pictures, width)`, or `None`.

    Args:
        source: An `Index` or the path of its file; a folder; or a recipe, its name or its file.
        labels, splits, recipe, folder: As in `inspect_index`.
    """
    of = None if recipe is None else of_recipe(recipe)  # a wrong recipe is an error before an index is read
    if is_index(source):
        pictures, vectors = of_index(source, folder)
    else:
        pictures, vectors = (of_recipe if _is_recipe(source) else of_folder)(source), None
    if of is not None:
        pictures = layout.as_in(pictures, of)
    pictures = layout.with_given(pictures, labels, splits)
    if pictures.rows is not None and vectors is not None:
        vectors = vectors[pictures.rows]
    if len(pictures) + len(pictures.unread) < 2:
        raise ValueError(f"There must be two pictures to compare. Received: {len(pictures)} in {str(source)!r}")
    return pictures, vectors


def has_files(source):
    """Returns whether the pictures of a source are files, not in memory."""
    from keras_vit.config.cookbook import load_recipe

    return is_index(source) or not _is_recipe(source) or folder_of(load_recipe(source)) is not None


def is_index(source):
    """Returns whether a source is an `Index`, or named like the file of one."""
    return isinstance(source, Index) or (isinstance(source, (str, os.PathLike)) and str(source).endswith(".npz"))


def _is_recipe(source):
    from keras_vit.config import Recipe
    from keras_vit.config.cookbook import list_recipes

    if isinstance(source, Recipe):
        return True
    path = checks.path("index", source)
    return not path.is_dir() and (path.suffix == ".py" or str(source) in list_recipes())


def of_folder(folder):
    """Returns the `Pictures` of a folder."""
    folder = checks.path("index", folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}, and no recipe and no index of that name.")
    paths = in_folder(folder)
    names = [path.relative_to(folder).as_posix() for path in paths]
    return layout.laid_out(Pictures(names, [*map(str, paths)], folder=folder))


def of_index(index, folder=None):
    """Returns the `Pictures` of an index and its vectors."""
    if isinstance(index, Index):
        if folder is not None:
            index = index._replace(about={**index.about, "folder": str(checks.path("folder", folder))})
    else:
        index = load_index(index, folder=folder)
    index = flat(index)
    place = pathlib.Path(index.about["folder"])
    names = [str(name) for name in index.paths]
    pictures = Pictures(
        names, [os.path.join(place, name) for name in names], folder=place, unread=dict(index.left_out.tolist())
    )
    if not any(map(is_image, names)):
        pictures = dataclasses.replace(
            pictures,
            images=None,
            left_out=("Pixels: the index is of clips, which are compared by their vectors alone",),
        )
    elif not place.is_dir():
        missing = f"Pixels: the folder of the index, {str(place)!r}, is not there; pass where it is now as `folder`"
        pictures = dataclasses.replace(pictures, images=None, left_out=(missing,))
    return layout.laid_out(pictures), index.vectors
