"""Whether image files can be read, and what they hold: found once for each file, and again when it has changed."""

import contextlib
import functools
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

from keras_vit import images
from keras_vit.data import crops

DIGEST = 16


def inspect(path):
    """Decodes an image file, unless that was done and its size and time of change are the same.

    Returns:
        What keeps it from being read, or `None`; and a hash of its bytes, `DIGEST` bytes long.
    """
    path = str(path)
    try:
        status = os.stat(path)
    except OSError as error:
        return error.strerror, b""
    if stat.S_ISREG(status.st_mode) and not status.st_size:
        return "empty file", b""
    return _inspect(path, status.st_size, status.st_mtime_ns)


def inspect_all(paths):
    """Returns what `inspect` does of each file, in order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(inspect, paths))


@functools.lru_cache(maxsize=1 << 20)  # a folder is read once for each split
def _inspect(path, _size, _modified):
    try:
        data = images.encoded(path)
        crops.decode(tf.constant(data), 3)
    except (ValueError, OSError) as error:
        return str(error).removeprefix(f"{path!r} ").removesuffix("."), b""
    except Exception as error:  # whatever the decoder finds is this file's fault, to be told with its name
        return crops.reason(error), b""
    return None, hashlib.blake2b(data, digest_size=DIGEST).digest()


def contents(**sources):
    """Returns hashes of what the files of sources held when they were checked, in their order.

    Args:
        **sources: Sources by name. Those that are no checked files are passed over.

    Returns:
        A dictionary, such as `{"train_contents": "3f..."}`.
    """
    found = {name: getattr(source, "digests", None) for name, source in sources.items()}
    return {f"{name}_contents": hashlib.sha256(d.tobytes()).hexdigest() for name, d in found.items() if d is not None}


@contextlib.contextmanager
def named(*sources):
    """A block in which an image file that can no longer be read is an error with its name, and no trace.

    Raises:
        ValueError: If a file of the sources was changed since, or removed.
    """
    try:
        yield
    except (tf.errors.OpError, FileNotFoundError):
        paths = [path for source in sources if getattr(source, "files", False) for path in source.images]
        for path, (reason, _) in zip(paths, inspect_all(paths)):
            if reason:
                raise ValueError(
                    f"{str(path)!r} was an image when it was checked, and is none now: {reason}."
                ) from None
        raise
