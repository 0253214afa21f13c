"""Image files in folders."""

import os
import pathlib
import re

from keras_vit.utils.progress import passing

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".jfif", ".jpe", ".apng", ".tif", ".tiff")
ARRAYS = (".npy", ".npz")  # which are pictures in a folder without others
OTHER_PICTURES = (  # of formats that are not read
    *(".avif", ".heic", ".heif", ".hif", ".jp2", ".j2k", ".jpx", ".jxl", ".dib", ".ico", ".tga"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".pcx", ".psd", ".dds", ".exr", ".hdr", ".svg", ".eps", ".dcm", ".nii"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf", ".raw"),
)
HIDDEN = {  # folders of systems, disks and programs, in lower case: thumbnails, forks, what was deleted or cached
    *("__macosx", "network trash folder", "temporary items", "thevolumesettingsfolder"),  # of macOS
    *("$recycle.bin", "recycler", "recycled", "system volume information", "found.000", "msocache"),  # of Windows
    *("@eadir", "#recycle", "#snapshot", "@recycle", "@recently-snapshot", "@tmp", "@syno", "~snapshot"),  # of servers
    *("lost+found", "__pycache__"),
}
SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}  # usual names of their folders


def in_folder(folder):
    """Returns the paths of all images in a folder and its subfolders, as `files_in` finds them.

    Those of formats that are not read are among them: whoever reads them says so.

    Raises:
        ValueError: If there is none.
    """
    files = files_in(folder)
    images = [pathlib.Path(path) for path in files if path.lower().endswith(IMAGE_ENDINGS + OTHER_PICTURES)]
    images = images or [pathlib.Path(path) for path in files if path.lower().endswith(ARRAYS)]
    if not images:
        raise ValueError(f"There is no image in the folder {str(folder)!r}. Known endings: {', '.join(IMAGE_ENDINGS)}.")
    return images


def files_in(folder):
    """Returns the paths of all files in a folder and its subfolders, texts, sorted by their parts.

    Links are followed; hidden files and folders are left out, such as another program's thumbnails.

    Raises:
        ValueError: If the folder is a whole disk.
    """
    return files_in_each([folder])[0]


def files_in_each(folders):
    """Returns the `files_in` each folder; what takes more than two seconds shows on standard error how far it is."""
    lists = [[] for _ in folders]
    for folder in folders:
        check_folder(folder)
    every = ((files, path) for files, folder in zip(lists, folders) for path in _walk(str(folder)))
    for files, path in passing(every, "finding files: {n:,}", 2.0, every=1000):
        files.append(path)
    return lists


def _walk(folder):
    """Yields the path of each file that `files_in` returns, in order."""
    seen, places = set(), [(folder, os.path.realpath(folder))]
    while places:
        place, real = places.pop()
        if real is None:
            yield place
        elif real not in seen:  # a link may lead back
            seen.add(real)
            places += [(_path(entry, place), _real(entry, real)) for entry in _entries(place)]


def _entries(folder):
    """Returns what is in a folder, from the last name to the first; nothing of one that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if not is_hidden(e.name)), key=lambda entry: entry.name, reverse=True)
    except OSError:
        return []


def _path(entry, folder):
    return entry.name if folder == os.curdir else entry.path


def _real(entry, above):
    """Returns a folder's path without links, given that of the folder above it; `None` for a file."""
    try:
        if not entry.is_dir():
            return None
        return os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(above, entry.name)
    except OSError:
        return None


def is_hidden(name):
    """Returns whether a file or folder is left out by its name: hidden, or of the system and not of the user."""
    return name.startswith(".") or name.lower() in HIDDEN


def is_image(path):
    """Returns whether the name of a file, a text, ends like that of an image."""
    return path.lower().endswith(IMAGE_ENDINGS)


def pictures_among(lists):
    """Returns, of lists of paths, those of images; of arrays where there is no image in any list."""
    images = [list(filter(is_image, paths)) for paths in lists]
    return images if any(images) else [[path for path in paths if path.lower().endswith(ARRAYS)] for paths in lists]


def natural_key(path):
    """Returns a key that sorts paths as people count: `img2.png` before `img10.png`, folder by folder.

    It is for what people read alone: the order of classes and of training images is that of `files_in`.
    """
    parts = [re.split(r"([0-9]+)", part) for part in pathlib.PurePath(path).parts]
    return [[int(text) if i % 2 else text for i, text in enumerate(texts)] for texts in parts], str(path)


def ending(path):
    """Returns the ending of a file's name, such as `".jpg"`, in lower case."""
    return os.path.splitext(path)[1].lower()


def check_folder(folder):
    """Raises ValueError if a folder to search is a whole disk, such as `/`: it has more than anyone's images."""
    path = pathlib.Path(folder).resolve()
    if path == pathlib.Path(path.anchor):
        raise ValueError(f"A folder of images must not be a whole disk. Received: {str(folder)!r}")


def shown(path):
    """Returns a path that can be printed: bytes that are not UTF-8 are written as `\\xff`."""
    return os.fsencode(path).decode(errors="backslashreplace")
