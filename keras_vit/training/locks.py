"""Locks of directories in which a process trains."""

import contextlib
import pathlib

import filelock

LOCK = ".lock"


class BusyError(ValueError):
    """Says that another process trains in a directory."""


@contextlib.contextmanager
def locked(folder, writes=True):
    """A block in which a lock file keeps other processes out of a directory, which is made if missing.

    Args:
        folder: The directory.
        writes: Whether this process writes its files. Others of the same training take no lock.

    Raises:
        BusyError: If another process is in such a block.
        OSError: If the directory cannot be created or written to.
    """
    if not writes:
        yield
        return
    folder = pathlib.Path(folder)
    lock = filelock.FileLock(folder / LOCK, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout:
        raise BusyError(
            f"Another process is training in {str(folder)!r}. Wait for it, or choose another directory."
        ) from None
    except OSError as error:
        raise OSError(f"{str(folder)!r} must be a writable directory. Received: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()
