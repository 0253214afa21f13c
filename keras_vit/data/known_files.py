"""What inspections found, in memory and in a cache directory, so that only new and changed files are inspected.

A file is unchanged if its path, its size, and its times of modification and of change are. No program can set the time
of change, so it tells of a file that `cp -p` replaced. As in git's index, a file that changed less than `SETTLED`
before it was inspected is not written to the cache: it may change again without another time.

The cache is one file for each folder of images, with hashes of paths. Files that cannot be read are not in it.
"""

import contextlib
import hashlib
import os
import stat
import time

import numpy as np

from keras_vit.data.parallel import in_parts
from keras_vit.utils import files

KEY = (("path", "u8"), ("bytes", "u8"), ("modified", "i8"), ("changed", "i8"))  # hash, bytes, nanoseconds twice
KEPT = (("asked", "u2"), ("settled", "?"))  # the day it was last asked for, since 1970; whether it may be written
NONE = (0, 0, 0, 0)
SETTLED = 2 * 10**9  # nanoseconds; the times of FAT have steps of two seconds
AT_ONCE = 64  # files that a thread inspects together
COMPARED = 1024  # files that are compared together
QUICK, SOME, THREADS = (
    2e-5,
    64,
    32,
)  # seconds in which a quick disk says when a file changed; files to try; else threads
SAVED = 60.0  # seconds of work that a kill may lose
NOTED, FORGOTTEN = 30, 100  # days after which it is written that a file was asked for; without that it is forgotten
DAY = 24 * 60 * 60


class KnownFiles:
    """The results of inspecting files of one kind.

    Args:
        kind: What they are, and the versions of what decodes them.
        fields: Fields of a result, as of a NumPy `dtype`.
        inspect: Function of a list of paths. Returns for each a tuple of the fields; or anything else, which is kept in
            memory alone.
    """

    def __init__(self, kind, fields, inspect):
        self.dtype = np.dtype([*KEY, *KEPT, *fields])
        self.kind = f"{kind} {self.dtype.descr}"
        self.inspect = inspect
        self.held = {}  # records by folder, sorted by their paths
        self.others = {}  # results that are no records, by path and status

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
        folder, now, today, done, saved = _common(paths), time.time_ns(), _today(), 0, time.monotonic()
        records, others = self._known(paths, folder)
        new = [row for row in np.flatnonzero(records["asked"] == 0).tolist() if row not in others]
        try:
            for results in in_parts(lambda rows: self.inspect([paths[row] for row in rows]), new, AT_ONCE, what):
                for row, result in zip(new[done:], results):
                    key = [records[name][row].item() for name, _ in KEY]
                    if type(result) is tuple:
                        records[row] = (*key, today, max(key[2:]) < now - SETTLED, *result)
                    else:
                        others[row] = self.others[paths[row], *key] = result
                done += len(results)
                if time.monotonic() - saved > SAVED:
                    self._keep(folder, records, done)
                    saved = time.monotonic()
        finally:
            self._keep(folder, records, done)
        return records, others

    def _known(self, paths, folder):
        """Returns what `look_up` does as far as it is known: the keys of other records are there, and no day."""
        held, records, others, done = self._held(folder), np.zeros(len(paths), self.dtype), {}, 0
        order = np.ascontiguousarray(held["path"])

        def compare(rows):
            keys = [_key(paths[row], len(folder)) for row in rows]
            part = records[rows.start : rows.stop]
            part[[name for name, _ in KEY]] = np.array([NONE if isinstance(k, str) else k for k in keys], [*KEY])
            if len(held):
                then = held[np.searchsorted(order, part["path"]).clip(max=len(held) - 1)]
                same = np.logical_and.reduce([then[name] == part[name] for name, _ in KEY])
                part[same] = then[same]
            return [k if isinstance(k, str) else self.others.get((paths[row], *k)) for row, k in zip(rows, keys)]

        for found in in_parts(compare, range(len(paths)), COMPARED, "looking for new files", _threads(paths)):
            others.update((done + i, other) for i, other in enumerate(found) if other is not None)
            done += len(found)
        return records, others

    def _held(self, folder):
        if folder not in self.held:
            self.held[folder] = self._read(self._file(folder))
        return self.held[folder]

    def _keep(self, folder, records, new):
        """Keeps records in memory and in the cache, if some are new or it was not noted for long that they are used."""
        if not new and not ((records["asked"] > 0) & (records["asked"] < _today() - NOTED)).any():
            return
        records = records[records["asked"] > 0]
        records["asked"] = _today()
        self.held[folder] = _merged(self.held[folder], records)
        file, written = self._file(folder), records[records["settled"]]
        if file is None or not len(written):
            return
        with contextlib.suppress(OSError):  # a full disk, or one that is read only: there is no cache
            file.parent.mkdir(parents=True, exist_ok=True)
            older = self._read(file)  # another process may have written it meanwhile
            with files.replacing(file) as temporary:
                np.savez(temporary, records=_merged(older[older["asked"] > _today() - FORGOTTEN], written))
            files.sweep(file.parent, "files-", FORGOTTEN * DAY)

    def _file(self, folder):
        """Returns the path of the cache for a folder, or `None` if there shall be none."""
        place = files.cache()
        name = hashlib.blake2b(
            f"{self.kind} {os.path.abspath(folder)}".encode(errors="surrogateescape"), digest_size=16
        )
        return place and place / f"files-{name.hexdigest()}.npz"

    def _read(self, file):
        """Returns the records in a cache; none if there is no such file, or it is damaged."""
        try:
            with (
                open(files.regular(file), "rb") as stream,
                np.load(stream) as found,
            ):  # never unpickles, and checks sums
                records = found["records"]
            if records.dtype == self.dtype and (records["path"][:-1] <= records["path"][1:]).all():
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
    """Returns how many threads ask when files changed: one for a quick disk: they would wait for Python."""
    began = time.perf_counter()
    for path in paths[:SOME]:
        _key(path, 0)
    return 1 if time.perf_counter() - began < QUICK * SOME else THREADS


def _key(path, cut):
    """Returns what tells one version of a file from others, in the order of `KEY`; or why it cannot be read."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        return getattr(error, "strerror", None) or str(error)
    if not status.st_size and stat.S_ISREG(status.st_mode):
        return "empty file"
    digest = hashlib.blake2b(path[cut:].encode(errors="surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _merged(older, newer):
    """Returns the records of both, sorted by path; where a path is in both, the newer one."""
    both = np.concatenate([newer, older])
    return both[np.unique(both["path"], return_index=True)[1]]
