"""Names of classes in a file, one a line."""

import pathlib

from keras_vit import files


def check_labels(names):
    """Raises ValueError if a class has a name that a file of one name a line cannot hold."""
    broken = [name for name in names if "\n" in name or "\r" in name]
    if broken:
        raise ValueError(f"A class name is one line: rename the folder or the class. Received: {broken[0]!r}")


def write_labels(path, names):
    """Writes the names of classes, one a line."""
    check_labels(names)
    with files.replacing(path) as temporary:
        temporary.write_text("".join(f"{name}\n" for name in names), "utf-8", "surrogateescape", "\n")


def read_labels(path):
    """Returns the names of classes that `write_labels` wrote; a name may hold any character but line feeds."""
    lines = pathlib.Path(path).read_bytes().decode("utf-8", "surrogateescape").split("\n")
    return tuple(line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1]))


def fitting(names, count):
    """Returns names of classes as a list, if they are one text for each of so many classes, else `None`."""
    told = isinstance(names, (list, tuple)) and len(names) == count and all(isinstance(name, str) for name in names)
    return list(names) if told else None


def labels_beside(path):
    """Returns the names of classes in a file next to a model's, or `None`.

    `mnist.labels.txt` is next to `mnist.keras`, and `labels.txt` in the directory of a run.
    """
    path = pathlib.Path(path)
    of_run = [path.with_name("labels.txt")] if path.with_name("recipe.json").is_file() else []
    found = next((file for file in (path.with_suffix(".labels.txt"), *of_run) if file.is_file()), None)
    return found and read_labels(found)
