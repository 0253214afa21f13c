"""Writing a file so that a failure leaves what was there."""

import contextlib
import os
import pathlib


@contextlib.contextmanager
def replacing(path):
    """Yields a temporary path beside `path`; the file made there is forced to the disk and renamed to `path`.

    Raises:
        OSError: If it cannot be written; `path` is then as it was, and nothing new lies beside it.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder):
    """Forces a renaming to the disk, where the system knows how."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
