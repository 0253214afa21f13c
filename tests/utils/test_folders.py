import os

import pytest

from keras_vit.utils import folders


def test_a_whole_disk_is_refused(tmp_path):
    root = tmp_path.anchor
    (tmp_path / "link").symlink_to(root)
    for folder in (root, f"{root}..", tmp_path / "link"):
        with pytest.raises(ValueError, match="must not be a whole disk. Received: "):
            folders.in_folder(folder)


def test_files_are_in_the_order_of_their_parts(tmp_path, monkeypatch):
    names = ["a.png", "a/b.png", "a/b/c.PNG", "a-b/c.jpg", "a b/.hidden.png", ".hidden/c.png", "b/notes.txt", "Z.gif"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "0").symlink_to(tmp_path / "b")  # the first name of a folder counts
    (tmp_path / "a" / "back").symlink_to(tmp_path)
    (tmp_path / "a" / "gone.png").symlink_to(tmp_path / "none")
    wanted = [*names[:4], "0/notes.txt", "a/gone.png", "Z.gif"]
    wanted = sorted(tmp_path / name for name in wanted)
    assert folders.files_in(tmp_path) == list(map(str, wanted))
    assert folders.in_folder(tmp_path) == [path for path in wanted if path.suffix != ".txt"]
    monkeypatch.chdir(tmp_path)
    assert folders.files_in(".") == [str(path.relative_to(tmp_path)) for path in wanted]
    assert folders.files_in_each(["b", "none", "a-b"]) == [["b/notes.txt"], [], ["a-b/c.jpg"]]


def test_a_long_search_says_how_far_it_is(tmp_path, clock, monkeypatch, capsys):
    def walk(folder):
        for number in range(2500):
            clock[0] += 0.001
            yield f"{number}.png"

    monkeypatch.setattr(folders, "_walk", walk)
    assert len(folders.files_in(tmp_path)) == 2500
    assert capsys.readouterr().err == "finding files: 2,000\n"


def test_a_path_that_is_no_utf_8_can_be_printed():
    assert folders.shown(os.fsdecode(b"a/\xff.png")) == "a/\\xff.png"


def test_people_count_and_data_keep_their_order(tmp_path):
    names = ["img1.png", "img10.png", "img2.png", "b/2.png", "b/10.png", "a10/x.png", "a9/x.png", "1.png", "01.png"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path) for path in folders.in_folder(tmp_path)]
    assert [str(path) for path in found] == sorted(names, key=lambda name: name.split("/"))
    counted = [str(path) for path in sorted(found, key=folders.natural_key)]
    assert counted == [
        "01.png",
        "1.png",
        "a9/x.png",
        "a10/x.png",
        "b/2.png",
        "b/10.png",
        *names[:1],
        names[2],
        names[1],
    ]
