import os
import pathlib
from unittest import mock

import pytest

from keras_vit.utils import files

pytestmark = pytest.mark.backend


def test_what_was_written_takes_the_place(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("old")
    with files.replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("good")

    def fail():
        with files.replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        fail()
    assert path.read_text() == "good" and list(tmp_path.iterdir()) == [path]


def test_other_files_of_a_writer_are_removed(tmp_path):
    path = tmp_path / "model.tflite"
    with files.replacing(path) as temporary:
        temporary.write_text("new")
        folder_of(temporary.with_name("graph"), "half done")
    assert path.read_text() == "new" and [*tmp_path.iterdir()] == [path]


def test_several_may_write_one_path_at_a_time(tmp_path):
    path = tmp_path / "model.keras"
    with files.replacing(path) as first, files.replacing(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_only_regular_files_of_some_size_are_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path in ("pipe", tmp_path / "pipe", "/dev/zero"):
        with pytest.raises((ValueError, FileNotFoundError), match="must be a regular file|No such file"):
            files.read(path)
    (tmp_path / "file").write_bytes(b"12345")
    assert files.read(tmp_path / "file") == b"12345"
    monkeypatch.setattr(files, "MOST_BYTES", 4)
    with pytest.raises(ValueError, match="at most 4 bytes. Received: 5"):
        files.read(tmp_path / "file")


def folder_of(path, text):
    path.mkdir(exist_ok=True)
    (path / "text").write_text(text)
    return path


def test_a_folder_is_replaced_in_one_step(tmp_path, monkeypatch):
    path, new = folder_of(tmp_path / "a", "old"), folder_of(tmp_path / "new", "new")
    if not files._exchange(path, new):
        pytest.skip("this file system cannot exchange two names")
    assert (path / "text").read_text() == "new" and (new / "text").read_text() == "old"
    monkeypatch.setattr(pathlib.Path, "rename", None)  # no path is without a folder meanwhile
    files.replace_folder(new, path)
    assert (path / "text").read_text() == "old"
    monkeypatch.undo()
    assert not files._exchange(path, tmp_path / "none")
    files.replace_folder(new, tmp_path / "none")
    assert (tmp_path / "none" / "text").read_text() == "new" and not new.exists()


@pytest.mark.parametrize("killed", [False, True])
def test_without_an_exchange_the_old_folder_comes_back(killed, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda *paths: False)
    path, new, real = folder_of(tmp_path / "a", "old"), folder_of(tmp_path / "new", "new"), pathlib.Path.rename

    def rename(self, target):
        real(self, target)
        if self == path:  # between the two renames
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "rename", rename)
        if killed:  # nothing more is done
            patch.setattr(files, "recover", lambda path: None)
        with pytest.raises(KeyboardInterrupt):
            files.replace_folder(new, path)
    assert path.exists() is not killed
    files.recover(path)
    assert (path / "text").read_text() == "old"
    files.replace_folder(new, path)
    assert (path / "text").read_text() == "new" and [*tmp_path.iterdir()] == [path]


def test_companion_files_are_added_and_removed_with_the_file(tmp_path):
    path = folder_of(tmp_path / "a", "old") / "text"
    (tmp_path / "a" / "text.data").write_text("old")
    (tmp_path / "a" / "notes").write_text("mine")
    with files.replacing(path, (".data",)) as temporary:
        temporary.write_text("new")
    assert {file.name: file.read_text() for file in path.parent.iterdir()} == {"text": "new", "notes": "mine"}
    with files.replacing(path, (".data",)) as temporary:
        temporary.write_text("newer")
        temporary.with_suffix(".data").write_text("newer")
    assert sorted(os.listdir(path.parent)) == ["notes", "text", "text.data"] and path.read_text() == "newer"


def test_a_link_to_nothing_is_not_free(tmp_path):
    (tmp_path / "link").symlink_to("nothing")
    with pytest.raises(FileExistsError, match="link' exists"):
        files.check_free(tmp_path / "link", False)
    with files.replacing(tmp_path / "link") as temporary:
        folder_of(temporary, "new")
    assert (tmp_path / "link" / "text").read_text() == "new" and os.listdir(tmp_path) == ["link"]


def test_places_where_nothing_can_be_written_are_named_before(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match=r"m.tflite' cannot be written: '.*file' is not a folder\.$"):
        files.check_free(tmp_path / "file" / "deep" / "m.tflite", True)
    for path in (tmp_path / f"{'n' * 300}.xml", tmp_path / ("n" * 300) / "m.xml"):
        with pytest.raises(OSError, match=r"nnn.*' cannot be written: File name too long\.$"):
            files.check_free(path, False)
    files.check_free(tmp_path / "new" / "newer" / "m.xml", False)


READERS = {  # what opens a file of this name
    "index.npz": ["load_index", "count", "stored"],
    "file.keras": ["AnomalyDetector", "load_run", "teacher", "from_checkpoint"],
    "history.csv": ["history"],
    "state-0000000001-0123456789abcdef.safetensors": ["state", "from_checkpoint"],
    "file.npz": ["from_checkpoint"],
    "file.h5": ["from_checkpoint"],
    "file.safetensors": ["from_checkpoint"],
}


@pytest.mark.parametrize("name, reader", [(name, reader) for name, readers in READERS.items() for reader in readers])
@pytest.mark.filterwarnings("ignore")
def test_nothing_but_a_regular_file_is_opened(name, reader, tmp_path):
    import keras_vit
    from keras_vit.frozen import AnomalyDetector, count, index, load_index
    from keras_vit.tasks.classify.distillation import load_teacher
    from keras_vit.training import history, state

    path = tmp_path / name
    path.symlink_to(os.devnull)  # of a pipe, a reader would wait
    read = {
        "AnomalyDetector": AnomalyDetector.load,
        "load_index": load_index,
        "count": count,
        "stored": lambda path: index.stored(path, index.NAMES),
        "load_run": keras_vit.load_run,
        "from_checkpoint": keras_vit.from_checkpoint,
        "history": lambda path: history.read(path.parent),
        "state": lambda path: state.newest(path.parent),
        "teacher": lambda path: load_teacher(keras_vit.Classify(distill="soft", teacher=str(path)), None),
    }
    with pytest.raises(
        (ValueError, FileNotFoundError), match="must be a regular file|There is no file|Every training state"
    ):
        read[reader](path)


def test_files_beside_a_path_move_with_it(tmp_path):
    path, other = tmp_path / "m.xml", tmp_path / "m.bin"
    for text in ("old", "new"):
        with files.replacing(path, beside=(".bin",)) as temporary:
            temporary.write_text(text)
            temporary.with_suffix(".bin").write_text(text)
            (temporary.parent / "scrap").write_text("")
        assert path.read_text() == other.read_text() == text and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(OSError, match="m.xml' could not be written"), files.replacing(path, (".bin",)) as temporary:
        temporary.with_suffix(".bin").write_text("one of two")
    assert path.read_text() == other.read_text() == "new" and len(list(tmp_path.iterdir())) == 2


def test_the_cache_is_where_the_system_has_it(monkeypatch, tmp_path):
    monkeypatch.delenv("KERAS_VIT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    usual = tmp_path / ".cache" / "keras_vit"
    assert files.cache() == usual
    for name, value, place in (
        ("XDG_CACHE_HOME", "relative", usual),  # as the specification says
        ("XDG_CACHE_HOME", str(tmp_path / "x"), tmp_path / "x" / "keras_vit"),
        ("KERAS_VIT_CACHE", "", tmp_path / "x" / "keras_vit"),
        ("KERAS_VIT_CACHE", "~/mine", tmp_path / "mine"),
        ("KERAS_VIT_CACHE", "off", None),
    ):
        monkeypatch.setenv(name, value)
        assert files.cache() == place


def test_an_error_names_the_file_that_was_meant_and_is_the_first(tmp_path):
    file = mock.Mock(close=mock.Mock(side_effect=OSError(28, "late")))
    found = pytest.raises(files.NotWrittenError, match=r"^'a\.csv' could not be written: No space left$")
    with found, files.naming("b.csv"), files.closing(file), files.naming("a.csv"):
        raise OSError(28, "No space left", tmp_path / "tmpabc")
