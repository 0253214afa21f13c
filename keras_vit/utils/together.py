"""Files that belong together, such as a graph and its weights: a new set takes the place of the old one.

Only the files of the set are renamed. First the new ones are gathered in a folder, whose last name says that they are
whole; then the old main file is taken away, without which nothing reads the others; then the new ones take their
places, the main one last. A process that is killed meanwhile leaves the old files, or the new ones, or others than the
main one: never a main file with another set's companions. Whoever writes next finishes its work. A lock on the folder
keeps two sets from mixing.
"""

import contextlib
import json
import os
import pathlib
import shutil
import time
import uuid

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

WHOLE = ".keras_vit-whole-"  # prefix of a folder whose files are about to take their places
ORDER, OLD = ".order.json", ".old"  # in this folder: names, the main file's last, and what goes; and the old files
PATIENCE = 60  # seconds after which unfinished work counts as a killed process's, where folders cannot be locked


def commit(temporary, path):
    """Flushes a file to disk and renames it to `path`, on the same disk."""
    _flush(temporary)
    os.replace(temporary, path)
    sync_folder(pathlib.Path(path).parent)


def replace_files(new, names, folder, gone=()):
    """Moves files of one folder into another on the same disk, all together; other files of the folder stay.

    Args:
        new: The folder with the files.
        names: Their names, that of the main file last.
        folder: Where they are moved to.
        gone: Names of files that are removed there.

    Raises:
        OSError: If a file cannot be moved. The old files are then there as before.
    """
    new, folder = pathlib.Path(new), pathlib.Path(folder)
    gathered, whole = new / f"{uuid.uuid4().hex}", folder / f"{WHOLE}{uuid.uuid4().hex}"
    (gathered / OLD).mkdir(parents=True)
    for name in names:
        _flush(new / name)
        (new / name).rename(gathered / name)
    with locked(folder):
        finish(folder)
        order = {"names": [*names], "gone": [*gone], "old": _stamp(folder / names[-1])}
        (gathered / ORDER).write_text(json.dumps(order))
        _flush(gathered / ORDER)
        sync_folder(gathered)
        gathered.rename(whole)  # from here on the new files are meant
        sync_folder(folder)
        try:
            _place(whole, folder)
        except BaseException:
            _take_back(whole, folder)
            raise


def finish_killed(folder):
    """Finishes what killed processes began with `replace_files` in a folder."""
    if any(pathlib.Path(folder).glob(f"{WHOLE}*")):
        with locked(folder) as safe:
            finish(folder, 0 if safe else PATIENCE)


def finish(folder, age=0):
    """As `finish_killed`, in a folder that is locked, for work that was begun `age` seconds ago or earlier."""
    folder = pathlib.Path(folder)
    for whole in folder.glob(f"{WHOLE}*"):
        with contextlib.suppress(FileNotFoundError):  # another process may be done with it
            if whole.stat().st_mtime > time.time() - age:
                continue
            order = json.loads((whole / ORDER).read_text())
            if _stamp(folder / order["names"][-1]) in (order["old"], None):
                _place(whole, folder)
        shutil.rmtree(whole, ignore_errors=True)  # also if someone has put another main file there since


def _stamp(path):
    """Returns what tells a file from another one that takes its place; `None` if there is none."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns]


@contextlib.contextmanager
def locked(folder):
    """Waits until no other process is inside for this folder; yields whether the system could lock it."""
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)) if fcntl else None
    safe = descriptor is not None
    try:
        if safe:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError:  # a network disk
                safe = False
        yield safe
    finally:
        if descriptor is not None:
            os.close(descriptor)  # and unlocked


def _place(whole, folder):
    """Moves gathered files into their places, and deletes their folder; what is done already is passed over."""
    order = json.loads((whole / ORDER).read_text())
    *others, main = order["names"]
    if (whole / main).exists():
        for name in (main, *order["gone"], *others):  # the main one first
            if os.path.lexists(folder / name) and (name in order["gone"] or os.path.lexists(whole / name)):
                (folder / name).rename(whole / OLD / name)
        sync_folder(folder)
        for name in (*others, main):  # the main one last
            if os.path.lexists(whole / name):
                (whole / name).rename(folder / name)
        sync_folder(folder)
    shutil.rmtree(whole, ignore_errors=True)


def _take_back(whole, folder):
    """Undoes `_place`."""
    order = json.loads((whole / ORDER).read_text())
    for name in order["names"]:
        if not os.path.lexists(whole / name):  # it was moved
            (folder / name).unlink(missing_ok=True)
    for name in (*order["gone"], *order["names"]):  # the main one last
        if os.path.lexists(whole / OLD / name):
            os.replace(whole / OLD / name, folder / name)
    shutil.rmtree(whole, ignore_errors=True)


def _flush(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder):
    """Flushes a renaming to disk, where the system supports it."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
