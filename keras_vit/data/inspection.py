"""Whether image files can be read, and hashes of their bytes. A file is inspected once, and again if it changes."""

import contextlib
import functools
import hashlib
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import tensorflow as tf

from keras_vit.data.readers import decoding
from keras_vit.utils import images
from keras_vit.utils.progress import counted

DIGEST = 16
AT_ONCE = 4096  # files that wait for a thread: each takes memory


class Inspected(NamedTuple):
    """The result of inspecting an image file."""

    fault: str | None  # why it cannot be read
    digest: bytes = b""  # hash of its bytes, `DIGEST` bytes long
    size: tuple[int, int] = (0, 0)  # width, height, as it is seen
    orientation: int = 1  # of EXIF
    highest: int | None = None  # of the upper eight bits, if it has sixteen


def inspect(path):
    """Decodes an image file, unless that was done before and its size and modification time are the same."""
    path = str(path)
    fault, version = status_of(path)
    return Inspected(fault) if fault else _inspect_version(path, *version)


def status_of(path):
    """Returns why a file cannot be read, or `None`; and its size and modification time."""
    try:
        status = os.stat(path)
    except OSError as error:
        return error.strerror, None
    if stat.S_ISREG(status.st_mode) and not status.st_size:
        return "empty file", None
    return None, (status.st_size, status.st_mtime_ns)


def inspect_all(paths):
    """Returns the `Inspected` of each file, in order."""
    return each(inspect, paths)


def each(function, items, what="checking images"):
    """Returns what a function returns for each of many files, in order; several are read at once.

    What takes more than a few seconds shows on standard error how far it is.
    """
    items, pool = list(items), ThreadPoolExecutor(os.cpu_count())
    parts = (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))
    try:
        results = ([result] for part in parts for result in pool.map(function, part))
        return [result for (result,) in counted(results, len(items), what, after=3.0, stream=sys.stderr)]
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the rest


@functools.lru_cache(maxsize=1 << 20)  # a folder is read once for each split
def _inspect_version(path, _size, _modified):
    try:
        data = images.encoded(path)
        orientation = images.orientation(data)
        with images.in_turn(data):
            pixels = decoding.decode(tf.constant(data), 3, orientation)
            (height, width, _), highest = pixels.shape, int(tf.reduce_max(pixels)) if images.is_deep(data) else None
            del pixels
    except (ValueError, OSError) as error:
        return Inspected(str(error).removeprefix(f"{path!r} ").removesuffix("."))
    except Exception as error:  # any error of the decoder is a fault of this file
        return Inspected(decoding.error_reason(error))
    return Inspected(None, hashlib.blake2b(data, digest_size=DIGEST).digest(), (width, height), orientation, highest)


def contents(**sources):
    """Returns hashes of the bytes of all files of each source, as they were when they were inspected.

    Args:
        **sources: Sources by name. Those without inspected files are skipped.

    Returns:
        A dictionary, such as `{"train_contents": "3f..."}`.
    """
    digests = {name: getattr(source, "digests", None) for name, source in sources.items()}
    return {f"{name}_contents": hashlib.sha256(d.tobytes()).hexdigest() for name, d in digests.items() if d is not None}


def identity(train, validation):
    """Returns a dictionary of hashes that identifies a run's data.

    Args:
        train: `Source` to train on.
        validation: `Source` to measure on.
    """
    hashes = {
        "arrays": getattr(train, "given", False),
        "train": train.fingerprint(),
        "validation": validation.fingerprint(),
    }
    return hashes | contents(train=train, validation=validation)


@contextlib.contextmanager
def named(*sources):
    """Raises one clear error with the file's name if an image file can no longer be read inside the block.

    Raises:
        ValueError: If a file of the sources was changed or removed after it was inspected.
    """
    try:
        yield
    except (tf.errors.OpError, FileNotFoundError):
        paths = [path for source in sources for path in getattr(source, "paths", ())]
        for path, found in zip(paths, inspect_all(paths)):
            if found.fault:
                said = f"{str(path)!r} was readable when it was checked, and now is not: {found.fault}."
                raise ValueError(said) from None
        raise
