import json
import multiprocessing
import os

import pytest

from keras_vit.utils import files, together

pytestmark = pytest.mark.backend


def folder_of(path, text, names=("text",)):
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        (path / name).write_text(text)
    return path


def pair(path):
    return {name: (path / name).read_text() for name in ("m.xml", "m.bin") if (path / name).exists()}


def export(path, text):
    with files.replacing(path, (".bin",)) as temporary:
        temporary.write_text(text)
        temporary.with_suffix(".bin").write_text(text)


def test_files_of_a_folder_are_replaced_and_others_stay(tmp_path, monkeypatch):
    path, new = folder_of(tmp_path / "a", "old"), folder_of(tmp_path / "new", "new")
    (path / "notes").write_text("mine")
    (path / "link").symlink_to("notes")
    folder_of(path / "deep", "mine")
    same = path.stat().st_ino
    together.replace_files(new, ["text"], path)
    assert (path / "text").read_text() == "new" and (path / "link").is_symlink()
    assert (path / "notes").read_text() == (path / "deep" / "text").read_text() == "mine"
    assert path.stat().st_ino == same  # whoever is inside stays inside
    monkeypatch.chdir(path)
    together.replace_files(folder_of(new, "newer"), ["text"], ".")
    assert (path / "text").read_text() == "newer" and sorted(os.listdir(tmp_path)) == ["a", "new"]


def test_what_others_write_meanwhile_stays(tmp_path):
    path = folder_of(tmp_path / "a", "old", ("m.xml", "m.bin"))
    with files.replacing(path / "m.xml", (".bin",)) as temporary:
        (path / "notes.txt").write_text("of another process")
        export(path / "b.xml", "another")
        temporary.write_text("new")
        temporary.with_suffix(".bin").write_text("new")
    assert pair(path) == {"m.xml": "new", "m.bin": "new"} and (path / "b.bin").read_text() == "another"
    assert sorted(os.listdir(path)) == ["b.bin", "b.xml", "m.bin", "m.xml", "notes.txt"]


def _many(path, text):
    for _ in range(30):
        export(path, text)


def test_sets_that_are_written_at_once_do_not_mix(tmp_path):
    path = folder_of(tmp_path / "a", "old", ("m.xml", "m.bin")) / "m.xml"
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_many, args=(path, text)) for text in ("one", "two")]
    for other in others:
        other.start()
    for other in others:
        other.join()
    found = pair(tmp_path / "a")
    assert len(found) == 2 and len({*found.values()}) == 1 and len(os.listdir(tmp_path / "a")) == 2


def test_a_file_that_cannot_be_moved_leaves_the_old_ones(tmp_path, monkeypatch):
    path = folder_of(tmp_path / "a", "old", ("m.xml", "m.bin"))
    real = type(path).rename

    def rename(self, target):
        if self.name == "m.xml" and self.parent.name.startswith(together.WHOLE):  # the last one
            raise PermissionError(13, "Permission denied")
        return real(self, target)

    monkeypatch.setattr(type(path), "rename", rename)
    with pytest.raises(OSError, match="m.xml' could not be written and is unchanged: Permission denied"):
        export(path / "m.xml", "new")
    assert pair(path) == {"m.xml": "old", "m.bin": "old"} and len(os.listdir(path)) == 2


def interrupted(path, text, old):
    """Leaves what a process leaves that is killed when its files are whole and the old main file is taken away."""
    whole = folder_of(path / f"{together.WHOLE}1", text, ("m.xml", "m.bin"))
    (whole / together.OLD).mkdir()
    order = {"names": ["m.bin", "m.xml"], "gone": [], "old": old}
    (whole / together.ORDER).write_text(json.dumps(order))


def test_whoever_writes_next_finishes_what_was_killed(tmp_path):
    path = folder_of(tmp_path / "a", "old", ("m.bin",))
    interrupted(path, "new", [1, 2, 3])
    export(path / "other.xml", "mine")
    assert pair(path) == {"m.xml": "new", "m.bin": "new"} and len(os.listdir(path)) == 4


def test_what_someone_has_put_there_since_is_kept(tmp_path):
    path = folder_of(tmp_path / "a", "by hand", ("m.xml", "m.bin"))
    interrupted(path, "new", [1, 2, 3])
    together.finish_killed(path)
    assert pair(path) == {"m.xml": "by hand", "m.bin": "by hand"} and len(os.listdir(path)) == 2


def test_without_locks_only_old_work_is_finished(tmp_path, monkeypatch):
    path = folder_of(tmp_path / "a", "old", ("m.bin",))
    interrupted(path, "new", None)
    monkeypatch.setattr(together, "fcntl", None)
    together.finish_killed(path)
    assert "m.xml" not in pair(path)
    os.utime(path / f"{together.WHOLE}1", (0, 0))
    together.finish_killed(path)
    assert pair(path) == {"m.xml": "new", "m.bin": "new"}
