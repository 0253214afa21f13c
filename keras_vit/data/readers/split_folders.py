"""The folder of a split, and the class folders and the image files in it."""

import itertools
import os
import pathlib

import numpy as np

from keras_vit.data.readers import table_file
from keras_vit.utils import folders
from keras_vit.utils.folders import SPLITS, ending, shown
from keras_vit.utils.names import Written, composed
from keras_vit.utils.warned import left_out


def place_of(root, split, what, by_column=False):
    """Returns the folder of a split, below a root, a path; raises for one that does not exist or contains splits."""
    base = split.partition("[")[0]
    folder = root if base == "all" or by_column else below(root, base)
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {str(root)!r}. A recipe names it: data.source=folder:PATH.")
    folders.check_folder(root)
    if not folder.is_dir():
        raise ValueError(
            f"{str(root)!r} has no folder {base!r} for the split {split!r}. If the {what} are directly inside "
            "it, use splits of 'all', such as 'all[:80%]'."
        )
    if base == "all" and not by_column:
        _check_no_splits(folder)
    return folder


def below(folder, name):
    """Returns the path of what has a name in a folder, in whichever form of Unicode it is written."""
    return pathlib.Path(Written().path(folder / name))


def _check_no_splits(folder):
    """Raises ValueError if a folder to be split contains splits, which would be taken for classes."""
    names = inside(folder)
    if len(names) > 1 and {name.lower() for name in names} <= SPLITS:
        splits = {split[:2]: split for split in ("train", "validation", "test")}
        words = " ".join(f"data.{splits[name.lower()[:2]]}={name}" for name in names)
        raise ValueError(
            f"{str(folder)!r} contains folders of splits, {', '.join(names)}: name them in place of splits of 'all', "
            f"such as {words}"
        )


def class_folders(folder):
    """Returns the names of the class folders, sorted; a class may have two, whose names are equal in `names_of`."""
    names = inside(folder)
    for name in names:
        if shown(name).splitlines() != [name]:  # they are written to a file, one a line
            raise ValueError(
                f"The name of a class folder must be one line of UTF-8. Received: {name!r} in {str(folder)!r}"
            )
    return names


def names_of(names):
    """Returns the names of the classes of some class folders, and the number of each folder's class.

    Folders whose names differ only in the form of Unicode, as a Mac and other systems write them, are of one class.
    """
    places = {}
    numbers = [places.setdefault(composed(name), len(places)) for name in names]
    return list(places), numbers


def inside(folder):
    """Returns the names of the folders in a folder, sorted in one form of Unicode; hidden ones are left out."""
    names = (entry.name for entry in folder.iterdir() if entry.is_dir() and not folders.is_hidden(entry.name))
    return sorted(names, key=lambda name: (composed(name), name))


def image_files(folder, class_names, report=True):
    """Returns the paths of all files that end like an image, a list, and their labels, int32; warns of others."""
    every = folders.files_in_each([folder / name for name in class_names])
    files_of_classes = folders.pictures_among(every)
    taken = {path for paths in files_of_classes for path in paths}
    others = [path for paths in every for path in paths if path not in taken and not table_file.is_one(path)]
    if report and others:
        endings = sorted({ending(path) or os.path.basename(path) for path in others})
        left_out(f"{len(others)} files without an image extension: {', '.join(map(shown, endings[:10]))}")
    return [*itertools.chain(*files_of_classes)], np.repeat(
        np.arange(len(files_of_classes), dtype="int32"), [*map(len, files_of_classes)]
    )
