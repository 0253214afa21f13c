import os
import pathlib
import threading
import time
import types

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data import inspection, known_files
from keras_vit.data.augment import masks
from keras_vit.data.known_files import KnownFiles

OLD = time.time_ns() - 10**12


class Reader:
    """Inspects files: what they contain, and which were read."""

    def __init__(self):
        self.known = KnownFiles("files", [("length", "i8")], self.inspect)
        self.read = []

    def inspect(self, paths):
        self.read += [os.path.basename(path) for path in paths]
        texts = [pathlib.Path(path).read_bytes() for path in paths]
        return [f"bad {text}" if text.startswith(b"bad") else (len(text),) for text in texts]

    def __call__(self, paths):
        """Returns the results, and the names of the files that were read for them, sorted."""
        self.read.clear()
        records, others = self.known.look_up(list(map(str, paths)), "checking")
        found = [others.get(i, int(record["length"])) for i, record in enumerate(records)]
        return found, sorted(self.read)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of the cache; files change long before they are inspected, by its clock."""
    monkeypatch.setenv("KERAS_VIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(known_files, "SETTLED", -(10**12))
    return tmp_path / "cache"


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / "data" / "ab"[i % 2] / f"{i}.png" for i in range(6)]
    for i, path in enumerate(found):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * (i + 1))
    return found


def test_a_second_process_reads_new_and_changed_files_only(cache, paths):
    assert Reader()(paths) == ([1, 2, 3, 4, 5, 6], [f"{i}.png" for i in range(6)])
    assert Reader()(paths) == ([1, 2, 3, 4, 5, 6], [])
    reader = Reader()
    assert reader(paths)[1] == [] and reader(paths[::-2]) == ([6, 4, 2], [])  # those in "b" are known too
    paths[1].write_bytes(b"y")
    paths[2].rename(paths[2].with_name("new.png"))
    paths[2] = paths[2].with_name("new.png")
    assert Reader()(paths) == ([1, 1, 3, 4, 5, 6], ["1.png", "new.png"])
    assert Reader()([*paths[:2], "none.png"]) == ([1, 1, "No such file or directory"], ["0.png", "1.png"])


def test_a_file_with_another_s_size_and_time_is_another(cache, paths):
    """`cp -p`, `touch -r` and archives set the time of modification; none can set that of change."""
    os.utime(paths[0], ns=(OLD, OLD))
    Reader()(paths)
    other = paths[0].with_name("other.png")
    other.write_bytes(b"z")
    os.utime(other, ns=(OLD, OLD))
    other.replace(paths[0])
    assert paths[0].stat().st_mtime_ns == OLD and Reader()(paths)[1] == ["0.png"]
    paths[0].write_bytes(b"w")
    os.utime(paths[0], ns=(OLD, OLD))
    assert Reader()(paths)[1] == ["0.png"]


def test_what_changed_just_now_is_not_written(cache, paths, monkeypatch):
    monkeypatch.setattr(known_files, "SETTLED", 10**12)
    reader = Reader()
    assert reader(paths)[1] and not reader(paths)[1]  # in memory
    assert Reader()(paths)[1] == [f"{i}.png" for i in range(6)]
    assert not cache.exists()


@pytest.mark.parametrize("year", [2400, 9999, 1600])
def test_a_file_of_any_date_is_read(year, cache, paths):
    """One dated in the future is never settled; times have more than 64 bits."""
    os.utime(paths[0], ns=((year - 1970) * 31556952 * 10**9,) * 2)
    Reader()(paths)
    late = int(paths[0].stat().st_mtime) > time.time() + 10**6  # not every disk has such dates
    assert Reader()(paths) == ([1, 2, 3, 4, 5, 6], ["0.png"] * late)


def test_folders_that_are_exchanged_are_read_by_a_clock_of_any_step(cache, paths, monkeypatch):
    def stat(path, *given, real=os.stat, **more):
        status = real(path, *given, **more)
        found = {name: getattr(status, name) for name in dir(status) if name.startswith("st_")}
        return types.SimpleNamespace(**{**found, "st_mtime_ns": OLD, "st_ctime_ns": OLD})

    monkeypatch.setattr(known_files.os, "stat", stat)
    link, one, other = (paths[0].parents[1] / name for name in ("link", "a", "one"))
    other.mkdir()
    for path in paths[::2]:
        (other / path.name).write_bytes(b"y" * path.stat().st_size)
    link.symlink_to(one)
    files = [link / path.name for path in paths[::2]]
    for target in (one, other):
        link.unlink()
        link.symlink_to(target)
        assert [len(Reader()(files)[1]) for _ in range(2)] == [3, 0]


def test_windows_has_no_time_of_change(cache, paths, monkeypatch):
    monkeypatch.setattr(known_files, "ON_DISK", False)
    reader = Reader()
    assert [len(reader(paths)[1]) for _ in range(2)] == [6, 0] and not cache.exists()


def test_parts_of_a_folder_are_kept_together(cache, paths):
    for part in (paths[:4], paths[2:]):  # both in "data"
        Reader()(part)
    assert Reader()(paths) == ([1, 2, 3, 4, 5, 6], []) and len([*cache.iterdir()]) == 1


def test_bad_files_are_read_again(cache, paths):
    paths[3].write_bytes(b"bad")
    paths[4].write_bytes(b"")
    paths[5].unlink()
    found = [1, 2, 3, "bad b'bad'", "empty file", "No such file or directory"]
    for names in ([f"{i}.png" for i in range(4)], ["3.png"]):
        reader = Reader()
        assert reader(paths) == (found, names)
        assert reader(paths) == (found, [])
        written = [file.stat().st_mtime_ns for file in cache.iterdir()]
    os.utime(paths[0], (2**33, 2**33))  # never settled, and nothing to write
    assert Reader()(paths)[1] == ["0.png", "3.png"]
    assert [file.stat().st_mtime_ns for file in cache.iterdir()] == written


@pytest.mark.parametrize("damage", [b"", b"PK\3\4", "cut", "flipped", "other", "square", "folder"])
def test_a_damaged_cache_is_written_anew(damage, cache, paths):
    Reader()(paths)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    elif damage == "other":
        np.savez(file, records=np.arange(6))
    elif damage == "square":
        records = np.load(file)["records"]
        np.savez(file, records=np.stack([records, records]))
    else:
        middle = len(whole) // 2
        changed = bytes([whole[middle] ^ 255])
        cut = {"cut": whole[:-40], "flipped": whole[:middle] + changed + whole[middle + 1 :]}
        file.write_bytes(cut.get(damage, damage))
    assert Reader()(paths) == ([1, 2, 3, 4, 5, 6], [f"{i}.png" for i in range(6)])
    assert Reader()(paths)[1] == []


@pytest.mark.parametrize("place", ["off", "/dev/null/cache", "/proc/cache", "file"])
def test_without_a_cache_all_works(place, cache, paths, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("KERAS_VIT_CACHE", str(tmp_path / "file") if place == "file" else place)
    for _ in range(2):
        reader = Reader()
        assert reader(paths)[1] == [f"{i}.png" for i in range(6)]
        assert reader(paths)[1] == []
    assert not cache.exists()


def test_a_full_disk_is_no_error(cache, paths, monkeypatch):
    Reader()(paths[:4])
    (file,) = cache.iterdir()
    before = file.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    assert Reader()(paths) == ([1, 2, 3, 4, 5, 6], ["4.png", "5.png"])
    assert file.read_bytes() == before and [*cache.iterdir()] == [file]


def test_versions_and_kinds_have_caches_of_their_own(cache, paths, monkeypatch):
    Reader()(paths)
    monkeypatch.setattr(known_files, "__version__", "of other rules")
    assert Reader()(paths)[1] == [f"{i}.png" for i in range(6)]
    for module, kind in ((inspection, "images"), (masks, "masks")):
        monkeypatch.setattr(module, "RULES", 99)
        module._known.cache_clear()
        assert module._known().kind.startswith(f"{kind} 99 of other rules ")
        module._known.cache_clear()


def test_what_nobody_asks_for_is_forgotten(cache, paths, monkeypatch):
    def after(days):
        monkeypatch.setattr(known_files, "_today", lambda: 20_000 + days)
        return Reader()

    after(0)
    Reader()(paths)
    (file,) = cache.iterdir()
    written = file.stat().st_mtime_ns
    after(20)(paths)
    assert file.stat().st_mtime_ns == written  # nothing is new
    after(40)(paths[:4])  # noted
    after(120)([*paths[:3], paths[0].with_name("none.png")])
    after(120)(paths[:4])
    with np.load(file) as found:
        assert len(found["records"]) == 4
    assert Reader()(paths)[1] == ["4.png", "5.png"]


def test_an_interrupted_check_keeps_what_was_done(cache, paths, monkeypatch):
    monkeypatch.setattr(known_files, "AT_ONCE", 1)
    reader = Reader()

    def inspect(names, read=reader.inspect):
        if names[0].endswith("4.png"):
            raise KeyboardInterrupt
        return read(names)

    reader.known.inspect = inspect
    with pytest.raises(KeyboardInterrupt):
        reader(paths)
    assert not {"0.png", "1.png", "2.png", "3.png"} & {*Reader()(paths)[1]}


def test_several_write_at_once(cache, paths):
    found = []
    threads = [threading.Thread(target=lambda: found.append(Reader()(paths)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[1, 2, 3, 4, 5, 6]] * 8 and Reader()(paths)[1] == []
    assert len([*cache.iterdir()]) == 1
