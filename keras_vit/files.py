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

from keras_vit import checks

UNFINISHED = ".keras_vit-unfinished-"  # prefix of files and folders that are not complete yet
REPLACED = ".keras_vit-replaced-"  # prefix of a folder that is being replaced, where the system cannot exchange two
MOST_BYTES = 2**26  # of class names or JSON
_DAY = 24 * 60 * 60

_PACKAGE = pathlib.Path(__file__).parent


def folder(name):
    """Returns the path of `recipes` or `saved_models`: in the installed package, else in the checkout."""
    return next(path for path in (_PACKAGE / name, _PACKAGE.parent / name) if path.is_dir())


def check_free(path, overwrite):
    """Raises FileExistsError if a path exists, unless `overwrite`."""
    if checks.path("path", path).exists() and not overwrite:
        raise FileExistsError(f"{str(path)!r} exists. Choose another path, or pass overwrite=True.")


def read(path, most=None):
    """Returns the bytes of a small file, such as class names or JSON.

    Raises:
        FileNotFoundError: If there is no file.
        ValueError: If it is not a regular file, such as a pipe, which would wait; or has more than `most` bytes,
            by default `MOST_BYTES`.
        OSError: If it cannot be read.
    """
    status, most = os.stat(path), most or MOST_BYTES
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{str(path)!r} must be a regular file.")
    if status.st_size > most:
        raise ValueError(f"{str(path)!r} must have at most {most:,} bytes. Received: {status.st_size:,}")
    return pathlib.Path(path).read_bytes()


@contextlib.contextmanager
def replacing(path):
    """Yields a temporary path in the same folder; the file written there is flushed to disk and renamed to `path`.

    Raises:
        OSError: If writing fails. `path` is then unchanged, and the temporary file is removed.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}-{path.name}")  # others may write the same path
    sweep(path.parent)
    try:
        yield temporary
        commit(temporary, path)
    except OSError as error:
        raise OSError(f"{str(path)!r} could not be written and is unchanged: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder, prefix=UNFINISHED):
    """Removes leftovers of killed processes: files and folders with this prefix that were not written to for a day."""
    for path in pathlib.Path(folder).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another process may sweep at the same time
            if max(part.stat().st_mtime for part in (path, *path.rglob("*"))) < time.time() - _DAY:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def commit(temporary, path):
    """Flushes a file to disk and renames it to `path`, on the same disk."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(pathlib.Path(path).parent)


def replace_folder(new, path):
    """Renames a folder to `path`; a process that is killed meanwhile leaves the old one there, or the new one.

    What was at `path` is then at `new`, or deleted. Where the system cannot exchange two names in one step, a kill may
    leave the old folder under another name, from which `recover` brings it back.
    """
    if not path.exists():
        new.rename(path)
    elif not _exchange(new, path):
        old = path.with_name(f"{REPLACED}{path.name}")
        try:
            path.rename(old)
            new.rename(path)
        finally:
            recover(path)
    _sync_folder(path.parent)


def recover(path):
    """Brings back what `replace_folder` took from `path`, if it was killed before it put the new folder there."""
    old = path.with_name(f"{REPLACED}{path.name}")
    if old.exists() and not path.exists():
        old.rename(path)
    elif old.exists():
        shutil.rmtree(old) if old.is_dir() else old.unlink()


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


def _sync_folder(folder):
    """Flushes a renaming to disk, where the system supports it."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
