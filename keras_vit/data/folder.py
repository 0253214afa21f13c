"""Folders of images with a folder for each class."""

import pathlib

import numpy as np

from keras_vit.data import inspection
from keras_vit.data.memory import Source
from keras_vit.images import shown

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")


def read(path, split, data):
    """Reads a split of a folder.

    Args:
        path: A folder of class folders, for splits of `"all"`; or of folders of class folders, one for each split.
        split: Such as `"all[:80%]"` or `"train"`.
        data: A `keras_vit.options.Data`; `bad_images` is read.

    Returns:
        A `memory.Source` of the files. Classes are in alphabetical order.
    """
    root = pathlib.Path(path).expanduser()
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {str(root)!r}.")
    base = split.partition("[")[0]
    folder = root if base == "all" else root / base
    if not folder.is_dir():
        raise ValueError(
            f"{str(root)!r} has no folder {base!r} for the split {split!r}. If the class folders are directly inside "
            "it, use splits of 'all', such as 'all[:80%]'."
        )
    class_names = _class_names(folder)
    files, digests = _readable(_image_files(folder, class_names), data.bad_images)
    _check_filled(folder, class_names, {label for _, label in files})
    paths, labels = zip(*files)
    whole = Source(np.array(paths), np.array(labels, "int32"), tuple(class_names), files=True, digests=digests)
    return whole.part(split, base)


def _class_names(folder):
    """Returns the names of the class folders, sorted; hidden folders are no classes."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    for name in names:
        if shown(name).splitlines() != [name]:  # they are written to a file, one a line
            raise ValueError(
                f"The name of a class folder must be one line of UTF-8. Received: {name!r} in {str(folder)!r}"
            )
    return names


def _image_files(folder, class_names):
    """Returns pairs of a path and a label, of all files that end like an image; prints how many do not."""
    every = [
        (file, label)
        for label, name in enumerate(class_names)
        for file in sorted((folder / name).rglob("*"))
        if not file.is_dir()
    ]
    files = [(str(file), label) for file, label in every if file.suffix.lower() in IMAGE_ENDINGS]
    if len(files) < len(every):
        others = sorted({file.suffix.lower() or file.name for file, _ in every} - set(IMAGE_ENDINGS))
        print(
            f"Ignored {len(every) - len(files)} files without an image extension: {', '.join(map(shown, others[:10]))}"
        )
    return files


def _readable(files, on_bad):
    """Decodes every image once; returns the readable files and their hashes. Others are an error, or are printed."""
    checked = inspection.inspect_all(path for path, _ in files)
    bad = [f"{shown(path)} ({reason})" for (path, _), (reason, _) in zip(files, checked) if reason]
    if bad:
        listed = "\n  ".join(bad[:10] + [f"and {len(bad) - 10} more"] * (len(bad) > 10))
        if on_bad == "raise" or len(bad) == len(files):
            raise ValueError(
                f"{len(bad)} of {len(files)} images cannot be read. Repair or remove them, or leave them out with "
                f"data.bad_images=skip:\n  {listed}"
            )
        print(f"Left out {len(bad)} of {len(files)} images, which cannot be read:\n  {listed}")
    digests = np.array([list(digest) for reason, digest in checked if not reason], "uint8")
    return [item for item, (reason, _) in zip(files, checked) if not reason], digests


def _check_filled(folder, class_names, labels):
    """Raises ValueError unless there are two classes, and every one has images; `labels` are those with images."""
    if len(labels) < 2:
        raise ValueError(
            f"{str(folder)!r} must contain at least two class folders with images ({', '.join(IMAGE_ENDINGS)}). "
            f"Received: {len(class_names)} folders, {len(labels)} with images"
        )
    if len(labels) < len(class_names):
        empty = [name for label, name in enumerate(class_names) if label not in labels]
        raise ValueError(f"{str(folder)!r} has class folders without images: {', '.join(empty[:10])}.")
