"""A cache of what was read from files, which notices that they changed."""

import contextlib
import functools
import os
import pathlib
import stat

TRAINED = "model.keras"  # of a folder with it, no other file counts: those of a run change while it trains


def cached(most):
    """Returns a decorator: a function whose first argument is where files are reads them once, until they change.

    Args:
        most: Largest number of results to keep.
    """

    def decorated(function):
        @functools.lru_cache(maxsize=most)
        def kept(state, *args):
            return function(*args)

        @functools.wraps(function)
        def call(place, *args):
            return kept(state_of(place), place, *args)

        call.cache_clear = kept.cache_clear
        return call

    return decorated


def state_of(place):
    """Returns sizes and times of change of a file, or of those in a folder and in the folders in it, by their paths.

    Args:
        place: A path, or an address or a name, which has none; nor has an empty one.
    """
    if not str(place):
        return ()
    path = pathlib.Path(os.path.expanduser(str(place)))
    if path.is_dir():
        trained = path / TRAINED
        paths = [trained] if trained.is_file() else sorted([*path.glob("*"), *path.glob("*/*")])
    else:
        paths = [path]
    found = []
    for each in paths:
        with contextlib.suppress(OSError):  # it may be gone by now
            state = each.stat()
            found += [(str(each), state.st_size, state.st_mtime_ns)] if stat.S_ISREG(state.st_mode) else []
    return tuple(found)
