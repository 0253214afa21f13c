"""Writing a file so that a failure leaves what was there; and where the package's own files are."""

import contextlib
import os
import pathlib
import shutil
import time

UNFINISHED = ".keras_vit-unfinished-"  # begins the names of files and folders that are not whole yet
_DAY = 24 * 60 * 60

_PACKAGE = pathlib.Path(__file__).parent


def folder(name):
    """Returns where `recipes` or `saved_models` are: in the installed package, else in the checkout beside it."""
    return next(path for path in (_PACKAGE / name, _PACKAGE.parent / name) if path.is_dir())


@contextlib.contextmanager
def replacing(path):
    """Yields a temporary path beside `path`; the file made there is forced to the disk and renamed to `path`.

    Raises:
        OSError: If it cannot be written; `path` is then as it was, and nothing new lies beside it.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f"{UNFINISHED}{path.name}")
    sweep(path.parent)
    try:
        yield temporary
        commit(temporary, path)
    except OSError as error:
        raise OSError(f"{str(path)!r} could not be written, and is as it was: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder, prefix=UNFINISHED):
    """Removes what killed processes left: files and folders of this prefix in which nothing was written for a day."""
    for path in pathlib.Path(folder).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another process may sweep at the same time
            if max(part.stat().st_mtime for part in (path, *path.rglob("*"))) < time.time() - _DAY:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def commit(temporary, path):
    """Forces a file to the disk and renames it to `path`, in the same folder."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(pathlib.Path(path).parent)


def _sync_folder(folder):
    """Forces a renaming to the disk, where the system knows how."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
