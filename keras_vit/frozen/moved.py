"""Finds the images of an index whose folder was moved, or that another system wrote."""

import os
import pathlib
import re

import numpy as np

from keras_vit.utils import checks
from keras_vit.utils.warned import warn

WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")  # how the name of a folder begins there
TRIED = 16  # images that a folder must have to be taken for the one that was moved


def with_slashes(paths, folder):
    """Returns the paths of an index with slashes, which only Windows writes otherwise.

    Args:
        paths: Array of texts.
        folder: The folder that the index states.
    """
    return np.char.replace(paths, "\\", "/") if WINDOWS.match(folder) else paths


def place_of(paths, folder, file, given=None):
    """Returns the folder of an index's images, where it is now.

    Args:
        paths: Array of paths in the folder.
        folder: Where it was.
        file: Path of the index.
        given: Where it is, as the caller says, or `None`.

    Raises:
        FileNotFoundError: If there is no image of the index in the given folder.
    """
    tried = [str(path) for path in paths[np.linspace(0, len(paths) - 1, min(TRIED, len(paths))).astype(int)]]
    if given is not None:
        given = checks.path("folder", given)
        lacking = next((path for path in tried if not (given / path).is_file()), None)
        if lacking is not None:
            raise FileNotFoundError(
                f"`folder` must have the images of {str(file)!r}. Received: {str(given)!r}, without {lacking!r}"
            )
        return str(given.resolve())
    if any(os.path.isfile(os.path.join(folder, path)) for path in tried):
        return folder
    found = next((place for place in _near(pathlib.Path(file), folder) if _has(place, tried)), None)
    if found is None:
        return folder
    warn(
        f"{folder!r}, the folder of {str(file)!r}, is not there: {str(found)!r} has the same images, and is taken. "
        "Pass `folder` to load_index for another."
    )
    return str(found)


def _near(file, folder):
    """Yields folders next to an index that may be the one that it states, first those of its name."""
    here = file.resolve().parent
    parts = (pathlib.PureWindowsPath if WINDOWS.match(folder) else pathlib.PurePosixPath)(folder).parts[1:]
    for i in range(len(parts)):
        yield here.joinpath(*parts[i:])
    yield here
    try:
        yield from sorted(path for path in here.iterdir() if path.is_dir())
    except OSError:  # a folder whose names may not be read
        return


def _has(place, paths):
    return all((place / path).is_file() for path in paths)
