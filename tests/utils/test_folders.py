import os

import pytest

from keras_vit.utils import folders


def test_a_whole_disk_is_refused_and_many_files_are_announced(tmp_path, monkeypatch):
    root = tmp_path.anchor
    (tmp_path / "link").symlink_to(root)
    for folder in (root, f"{root}..", tmp_path / "link"):
        with pytest.raises(ValueError, match="must not be a whole disk. Received: "):
            folders.in_folder(folder)
    for name in "abc":
        (tmp_path / f"{name}.png").write_bytes(b"")
    (tmp_path / "link").unlink()
    monkeypatch.setattr(folders, "MANY", 2)
    with pytest.warns(UserWarning, match="has more than 2 files: the search for images continues"):
        assert len(folders.in_folder(tmp_path)) == 3


def test_a_path_that_is_no_utf_8_can_be_printed():
    assert folders.shown(os.fsdecode(b"a/\xff.png")) == "a/\\xff.png"
