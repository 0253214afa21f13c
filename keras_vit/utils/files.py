"""Writes files so that a failure leaves the old file untouched, and finds the package's own folders."""

import contextlib
import ctypes
import os
import pathlib
import shutil
import stat
import sys
import time
import uuid

from keras_vit.utils import together

UNFINISHED = ".keras_vit-unfinished-"  # prefix of files and folders that are not complete yet
REPLACED = ".keras_vit-replaced-"  # prefix of a folder that is being replaced, where the system cannot exchange two
MOST_BYTES = 2**26  # of class names or JSON
BESIDE = {".xml": (".bin",), ".onnx": (".onnx.data",)}  # formats that need companion files, and the endings of these
FULL = "No space left"  # on device, in errors of the system; TensorFlow's own end there
_DAY = 24 * 60 * 60

_PACKAGE = pathlib.Path(__file__).parents[1]


def folder(name):
    """Returns the path of `recipes` or `saved_models`: in the installed package, else in the checkout."""
    return next(path for path in (_PACKAGE / name, _PACKAGE.parent / name) if path.is_dir())


def cache():
    """Returns the folder of what may be deleted at any time; `None` if `KERAS_VIT_CACHE` is `off`, or nothing is known.

    `KERAS_VIT_CACHE` names it; without, it is the system's usual place: https://specifications.freedesktop.org/basedir
    """
    named = os.environ.get("KERAS_VIT_CACHE")
    if named == "off":
        return None
    if named:
        return pathlib.Path(os.path.abspath(os.path.expanduser(named)))
    home = os.path.expanduser("~")
    place = f"{home}/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME")
    place = pathlib.Path(place if place and os.path.isabs(place) else f"{home}/.cache", "keras_vit")
    return place if place.is_absolute() else None  # without a home, "~" stays as it is


def check_free(path, overwrite, within="saved_model.pb"):
    """Checks that a file can be written, before there is anything to write.

    Args:
        path: A file or a folder.
        overwrite: Whether it may exist.
        within: A file by which a folder is known to be a former result; no other folder is replaced.

    Raises:
        FileExistsError: If a path exists, unless `overwrite`; or if it is a folder of something else.
        NotADirectoryError: If it is below a file.
        OSError: If its name is too long.
    """
    from keras_vit.utils import checks  # the rest of this module needs the standard library alone

    path = checks.path("path", path)
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not above.is_dir():
        raise NotADirectoryError(f"{str(path)!r} cannot be written: {str(above)!r} is not a folder.")
    try:
        exists = bool(os.lstat(path))  # a link to nothing too
    except FileNotFoundError:
        exists = False
    except OSError as error:
        raise OSError(f"{str(path)!r} cannot be written: {error.strerror}.") from None
    if exists and not overwrite:
        raise FileExistsError(f"{str(path)!r} exists. Choose another path, or pass overwrite=True.")
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, within)):
        what = "but no SavedModel" if within == "saved_model.pb" else f"without {within}"
        raise FileExistsError(f"{str(path)!r} is a folder {what}. Choose another path.")


def read(path, most=None):
    """Returns the bytes of a small file, such as class names or JSON.

    Raises:
        FileNotFoundError: If there is no file.
        ValueError: If it is not a regular file, such as a pipe, which would wait; or has more than `most` bytes,
            by default `MOST_BYTES`.
        OSError: If it cannot be read.
    """
    most, size = most or MOST_BYTES, os.stat(regular(path)).st_size
    if size > most:
        raise ValueError(f"{str(path)!r} must have at most {most:,} bytes. Received: {size:,}")
    return pathlib.Path(path).read_bytes()


def regular(path):
    """Returns the path of a file, which is to be opened, after a check that this will neither wait nor read for ever.

    Raises:
        FileNotFoundError: If there is no file.
        ValueError: If it is not a regular file, or a link to one, but a pipe or a device.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{str(path)!r} must be a regular file.")
    return path


class NotWrittenError(OSError):
    """Says which file could not be written, and why."""


@contextlib.contextmanager
def naming(path):
    """A block that writes to a file of any name in place of `path`: an error of the system names `path`.

    Raises:
        NotWrittenError: If writing fails.
    """
    try:
        yield
    except NotWrittenError:
        raise
    except OSError as error:
        raise NotWrittenError(f"{str(path)!r} could not be written: {error.strerror or error}") from None


@contextlib.contextmanager
def closing(file):
    """Yields a file and closes it. What was not flushed before may be lost: a full disk is no second error."""
    try:
        yield file
    finally:
        with contextlib.suppress(OSError):
            file.close()


@contextlib.contextmanager
def replacing(path, beside=()):
    """Yields a path in a temporary folder next to `path`; the file or folder written there takes the place of `path`.

    All else in the temporary folder is removed, except files with the endings `beside`, which take the place of
    `path.with_suffix(ending)` together with it, also where only one of old and new exists: see `together`.

    Raises:
        NotWrittenError: If writing fails. `path` is then unchanged, and what was written is removed.
    """
    path = pathlib.Path(path)
    folder = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}")  # others may write the same path
    temporary = folder / path.name
    recover(path)
    sweep(path.parent)
    try:
        folder.mkdir()
        yield temporary
        names = [temporary.with_suffix(ending).name for ending in beside]
        new = [name for name in names if (folder / name).exists()]
        old = [name for name in names if (path.parent / name).exists()]
        if new or old:  # the others first: nothing reads them without `path`
            together.replace_files(folder, [*new, path.name], path.parent, gone=set(names) - set(new))
        elif temporary.is_dir() or path.is_dir():
            replace_folder(temporary, path)
        else:
            together.commit(temporary, path)
    except NotWrittenError:  # another file that belongs to this one
        raise
    except OSError as error:
        reason = error.strerror or error
        raise NotWrittenError(f"{str(path)!r} could not be written and is unchanged: {reason}") from None
    finally:
        if os.path.isdir(folder):
            _remove(folder)  # with what was at `path`, if it was a folder


def sweep(folder, prefix=UNFINISHED, age=_DAY):
    """Removes leftovers of killed processes: what has this prefix and was not written to for `age` seconds."""
    for path in pathlib.Path(folder).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another process may sweep at the same time
            if max(part.stat().st_mtime for part in (path, *path.rglob("*"))) <= time.time() - age:
                _remove(path)


def replace_folder(new, path):
    """Renames a folder to `path`; a process that is killed meanwhile leaves the old one there, or the new one.

    What was at `path` is then at `new`, or deleted. Where the system cannot exchange two names in one step, a kill may
    leave the old folder under another name, from which `recover` brings it back.
    """
    if not os.path.lexists(path):
        new.rename(path)
    elif not _exchange(new, path):
        old = path.with_name(f"{REPLACED}{path.name}")
        try:
            path.rename(old)
            new.rename(path)
        finally:
            recover(path)
    together.sync_folder(path.parent)


def recover(path):
    """Brings back what `replace_folder` took from `path`, if it was killed before it put the new folder there.

    Files that belong to `path` and were about to take their places do so; see `together`.
    """
    if path.parent.is_dir():
        together.finish_killed(path.parent)
    old = path.with_name(f"{REPLACED}{path.name}")
    if old.exists() and not path.exists():
        old.rename(path)
    elif old.exists():
        _remove(old)


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _exchange(one, other):
    """Exchanges two paths in one step; returns whether the system and the file system could."""
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    paths, flag = (os.fsencode(one), os.fsencode(other)), 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return library.renamex_np(*paths, flag) == 0
    if hasattr(library, "renameat2"):
        here = -100  # AT_FDCWD: relative to the current folder
        return library.renameat2(here, paths[0], here, paths[1], flag) == 0
    return False


@contextlib.contextmanager
def destination(path, overwrite):
    """Yields a temporary path, which moves to `path` at the end; after an error `path` is as it was.

    What its format has in files next to it, `BESIDE`, and the JSON that describes it move with it.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false, or it is a folder but no SavedModel.
        OSError: If the folder of `path` cannot be made or written to, or the disk is full.
    """
    path = pathlib.Path(path)
    recover(path)
    check_free(path, overwrite)
    new = [folder for folder in path.parents if not folder.exists()]  # the innermost first
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with replacing(path, (f"{path.suffix}.json", *BESIDE.get(path.suffix, ()))) as temporary:
            yield temporary
    except Exception as error:  # of the writer's library
        for folder in new:
            with contextlib.suppress(OSError):  # another process may have written there
                folder.rmdir()
        if FULL in str(error):
            raise OSError(f"{str(path)!r} could not be written: the disk is full. Nothing was kept.") from None
        raise
