"""What inspections found, in memory and in a cache directory, so that only new and changed files are inspected.

A file is unchanged if its path, its place on the disk, its size, and its times of modification and of change are. No
program can set the time of change, so it tells of a file that `cp -p` replaced. As in git's index, a file that changed
less than `SETTLED` before it was inspected is not written to the cache: it may change again without another time.

The cache is one file for each folder of images, with hashes of paths. Files that cannot be read are not in it. There is
none on Windows, which calls the time of creation that of change.
"""

import contextlib
import hashlib
import os
import stat
import time

import numpy as np
import tensorflow as tf

from keras_vit import __version__
from keras_vit.data.parallel import in_parts
from keras_vit.utils import files

KEY = (("path", "u8"), ("version", "u8"), ("settled", "?"))  # hashes; whether it may be written
ASKED = ("asked", "u2")  # the day it was last asked for, since 1970
NONE = (0, 0, False)
SETTLED = 2 * 10**9  # nanoseconds; the times of FAT have steps of two seconds
AT_ONCE = 64  # files that a thread inspects together
COMPARED = 1024  # files that are compared together
QUICK = 2e-5  # seconds: a quick disk tells faster than this when a file changed
THREADS = 32  # how many ask a slow disk at once
ON_DISK = os.name != "nt"  # whether there is a time of change
PREFIX = "keras_vit-files-"
SAVED = 60.0  # seconds of work that a kill may lose
NOTED, FORGOTTEN = 30, 100  # days after which it is written that a file was asked for; without that it is forgotten
DAY = 24 * 60 * 60


class KnownFiles:
    """The results of inspecting files of one kind.

    Args:
        kind: What they are, and the number of the rules by which they are inspected.
        fields: Fields of a result, as of a NumPy `dtype`.
        inspect: Function of a list of paths. Returns for each a tuple of the fields; or anything else, which is kept in
            memory alone.
    """

    def __init__(self, kind, fields, inspect):
        import PIL

        self.dtype = np.dtype([*KEY, ASKED, *fields])
        self.kind = f"{kind} {__version__} {tf.__version__} {PIL.__version__} {self.dtype.descr}"
        self.inspect = inspect
        self.held = np.zeros(0, self.dtype)  # records, sorted by their paths
        self.loaded = set()  # folders whose cache was read
        self.others = {}  # results that are no records, by path and version

    def look_up(self, paths, what):
        """Returns the result for each file; inspects those that are new or changed.

        Args:
            paths: List of texts.
            what: What the line of progress begins with.

        Returns:
            A record for each file, `(files,)`; and a dictionary by position of results that are no records. Of files
            that are missing or empty these are texts that say so.
        """
        if not paths:
            return np.zeros(0, self.dtype), {}
        folder, today, count, saved = _common(paths), _today(), 0, time.monotonic()
        records, others = self._known(paths, folder)
        new = [row for row in np.flatnonzero(records["asked"] == 0).tolist() if row not in others]
        try:
            for results in in_parts(lambda rows: self.inspect([paths[row] for row in rows]), new, AT_ONCE, what):
                for row, result in zip(new[count : count + len(results)], results):
                    key = [records[name][row].item() for name, _ in KEY]
                    if type(result) is tuple:
                        records[row] = (*key, today, *result)
                    else:
                        others[row] = self.others[paths[row], key[1]] = result
                count += len(results)
                if time.monotonic() - saved > SAVED:
                    self._keep(folder, records, new[:count])
                    saved = time.monotonic()
        finally:
            self._keep(folder, records, new[:count])
        return records, others

    def _known(self, paths, folder):
        """Returns what `look_up` does as far as it is known: the keys of other records are there, and no day."""
        self._load(folder)
        held, order, top = self.held, np.ascontiguousarray(self.held["path"]), os.path.abspath(folder)
        records, others, done, now = np.zeros(len(paths), self.dtype), {}, 0, time.time_ns()

        def compare(rows):
            keys = [_key(paths[row], top + paths[row][len(folder) :], now) for row in rows]
            part = records[rows.start : rows.stop]
            part[[name for name, _ in KEY]] = np.array([NONE if isinstance(k, str) else k for k in keys], [*KEY])
            if len(held):
                then = held[np.searchsorted(order, part["path"]).clip(max=len(held) - 1)]
                same = (then["path"] == part["path"]) & (then["version"] == part["version"])
                part[same] = then[same]
            return [k if isinstance(k, str) else self.others.get((paths[row], k[1])) for row, k in zip(rows, keys)]

        for found in in_parts(compare, range(len(paths)), COMPARED, "looking for new files", _threads(paths)):
            others.update((done + i, other) for i, other in enumerate(found) if other is not None)
            done += len(found)
        return records, others

    def _load(self, folder):
        if folder not in self.loaded:
            self.loaded.add(folder)
            self.held = _merged(self._read(self._file(folder)), self.held)

    def _keep(self, folder, records, new):
        """Keeps records in memory and in the cache, if some are new or it was not noted for long that they are used."""
        asked = records["asked"] > 0
        due = records["asked"] < _today() - NOTED
        due[new] = True
        if not (asked & due).any():
            return
        records["asked"][asked] = _today()
        self.held = _merged(self.held, records[asked])
        file, settled = self._file(folder), asked & records["settled"]
        if file is None or not (settled & due).any():
            return
        with contextlib.suppress(OSError):  # a full disk, or one that is read only: there is no cache
            file.parent.mkdir(parents=True, exist_ok=True)
            older = self._read(file)  # another process may have written it meanwhile
            with files.replacing(file) as temporary:
                np.savez(temporary, records=_merged(older[older["asked"] > _today() - FORGOTTEN], records[settled]))
            files.sweep(file.parent, PREFIX, FORGOTTEN * DAY)

    def _file(self, folder):
        """Returns the path of the cache for a folder, or `None` if there shall be none."""
        place, about = files.cache() if ON_DISK else None, f"{self.kind} {os.path.abspath(folder)}"
        return place and place / f"{PREFIX}{_hash(about, 16).hex()}.npz"

    def _read(self, file):
        """Returns the records in a cache; none if there is no such file, or it is damaged."""
        try:
            with open(files.regular(file), "rb") as stream, np.load(stream) as file_content:
                records = file_content["records"]  # its sum is checked, and nothing unpickled
            if (
                records.dtype == self.dtype
                and records.ndim == 1
                and (records["path"][:-1] <= records["path"][1:]).all()
            ):
                return records
        except Exception:  # zipfile and NumPy raise many kinds for damaged files
            pass
        return np.zeros(0, self.dtype)


def _today():
    return int(time.time() // DAY)


def _common(paths):
    """Returns the folder that files have in common, the part of their paths up to its end."""
    first, last = min(paths), max(paths)  # what these two have in common, all have
    return os.path.commonprefix([first, last]).rpartition(os.sep)[0]  # noqa: RUF071


def _threads(paths):
    """Returns how many threads ask when files changed: one for a quick disk, since they would wait for Python."""
    began, some = time.perf_counter(), paths[:AT_ONCE]
    for path in some:
        _key(path, path, 0)
    return 1 if time.perf_counter() - began < QUICK * len(some) else THREADS


def _key(path, name, now):
    """Returns what tells one version of a file from others, in the order of `KEY`; or why it cannot be read.

    Args:
        path: The file.
        name: Its full path.
        now: The time before any file was inspected, in nanoseconds.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        return getattr(error, "strerror", None) or str(error)
    if not status.st_size and stat.S_ISREG(status.st_mode):
        return "empty file"
    times = status.st_mtime_ns, status.st_ctime_ns  # of any size: disks have dates after 2262
    version = f"{status.st_ino} {status.st_size} {times}"
    hashes = (int.from_bytes(_hash(text, 8)) for text in (name, version))
    return (*hashes, max(times) < now - SETTLED)


def _hash(text, size):
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=size).digest()


def _merged(older, newer):
    """Returns the records of both, sorted by path; where a path is in both, the newer one."""
    both = np.concatenate([newer, older])
    return both[np.unique(both["path"], return_index=True)[1]]
