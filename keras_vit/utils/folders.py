"""Image files in folders."""

import os
import pathlib
import warnings

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")
SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}  # usual names of their folders
MANY = 100_000  # files of a folder, beyond which the search for images is announced


def in_folder(folder):
    """Returns the paths of all images in a folder and its subfolders, sorted, as `files_in` finds them.

    Raises:
        ValueError: If there is none.
    """
    images = [path for path in files_in(folder) if path.suffix.lower() in IMAGE_ENDINGS]
    if not images:
        raise ValueError(f"There is no image in the folder {str(folder)!r}. Known endings: {', '.join(IMAGE_ENDINGS)}.")
    return images


def files_in(folder):
    """Returns the paths of all files in a folder and its subfolders, sorted.

    Links are followed; hidden files and folders are left out, such as another program's thumbnails.

    Raises:
        ValueError: If the folder is a whole disk.
    """
    check_folder(folder)
    return sorted(pathlib.Path(root, name) for root, name in walk(folder))


def walk(folder):
    """Yields the folder and the name of each file that `files_in` returns, in no order."""
    seen, count = set(), 0
    for root, folders, files in os.walk(folder, followlinks=True):
        new = os.path.realpath(root) not in seen  # a link may lead back
        seen.add(os.path.realpath(root))
        folders[:] = sorted(name for name in folders if new and not name.startswith("."))
        files = [name for name in files if new and not name.startswith(".")]
        yield from ((root, name) for name in files)
        if count <= MANY < count + len(files):
            said = f"{str(folder)!r} has more than {MANY:,} files: the search for images continues."
            warnings.warn(said, stacklevel=2)
        count += len(files)


def check_folder(folder):
    """Raises ValueError if a folder to search is a whole disk, such as `/`: it has more than anyone's images."""
    path = pathlib.Path(folder).resolve()
    if path == pathlib.Path(path.anchor):
        raise ValueError(f"A folder of images must not be a whole disk. Received: {str(folder)!r}")


def shown(path):
    """Returns a path that can be printed: bytes that are not UTF-8 are written as `\\xff`."""
    return os.fsencode(path).decode(errors="backslashreplace")
