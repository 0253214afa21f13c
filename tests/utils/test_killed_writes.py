import os
import signal
import subprocess
import sys

import pytest

from keras_vit.utils import files
from tests.marks import slow

pytestmark = pytest.mark.backend


def folder_of(path, text):
    path.mkdir(exist_ok=True)
    (path / "text").write_text(text)
    return path


@slow
def test_what_a_killed_process_left_goes_after_a_day(tmp_path):
    script = (
        "import os, runpy, sys, signal\n"
        "with runpy.run_path(sys.argv[1])['replacing'](sys.argv[2]) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script, files.__file__, str(tmp_path / "a.json")])
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    folder = tmp_path / f"{files.UNFINISHED}x"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "file").write_text("still being written")
    yours = tmp_path / ".settings"
    yours.mkdir()
    for path in (left, *left.iterdir(), folder, folder / "inside", yours):
        os.utime(path, (0, 0))
    with files.replacing(tmp_path / "b.json") as temporary:
        temporary.write_text("whole")
    assert not left.exists() and (folder / "inside" / "file").exists() and yours.exists()
    os.utime(folder / "inside" / "file", (0, 0))
    files.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".settings", "b.json"}


KILLS = """
import os, pathlib, shutil, signal, sys
from keras_vit.utils import files, together

case, folder = sys.argv[1], pathlib.Path(sys.argv[2])
it = folder / "it"

def fill(path, text):
    path.mkdir(parents=True)
    for name in ("one", "two"):
        (path / name).write_text(text)

def replace():
    if case == "folder":
        with files.replacing(it) as temporary:
            fill(temporary, "new")
    else:
        fill(it / "inside", "new")
        together.replace_files(it / "inside", ["one", "two"], it)

def read():
    return " ".join((it / name).read_text() if (it / name).exists() else "none" for name in ("one", "two"))

for number in range(1000):
    shutil.rmtree(folder)
    fill(it, "old")
    (it / "notes").write_text("mine")
    if not (child := os.fork()):
        count = iter(range(number))
        def hook(event, arguments):  # of every call that opens, renames or removes a file
            if event != "os.kill" and next(count, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        replace()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    killed = read()
    if case == "files":
        assert (it / "notes").read_text() == "mine"
        together.finish_killed(it)
    print(killed, read(), sep=",")
    if not status:
        break
"""


@pytest.mark.parametrize("case", ["folder", "files"])
def test_killed_at_any_moment_all_is_old_or_all_is_new(case, tmp_path):
    if not files._exchange(folder_of(tmp_path / "a", "old"), folder_of(tmp_path / "b", "new")):
        pytest.skip("this file system cannot exchange two names")
    done = subprocess.run(
        [sys.executable, "-c", KILLS, case, str(tmp_path)], capture_output=True, text=True, check=True
    )
    killed, later = zip(*(line.split(",") for line in done.stdout.splitlines()))
    whole = {"old old", "new new"}
    assert list(later) == sorted(later, reverse=True) and set(later) == whole
    assert later.count("old old") > 5 < later.count("new new")
    between = {each for each in killed if each not in whole}  # the main file, "two", is away
    assert between <= ({"old none", "none none", "new none"} if case == "files" else set())
