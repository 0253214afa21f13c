"""Messages that stay off the screen, and messages that do not, in processes of their own."""

import os
import subprocess
import sys

from keras_vit.commands.quiet import LEVEL

START = """
import logging, os, sys
sys.argv, sys.orig_argv = ["-m"], ["python", "-m", "keras_vit"]  # as there, without Keras
from keras_vit.commands.quiet import quiet
quiet()
for line in ("I0000 00:00:1.2  33 port.cc:153] oneDNN", "WARNING: All log messages before absl::InitializeLog() is"):
    os.write(2, line.encode() + b"\\n")  # as a library does
"""


def script(body, level=None):
    environment = {name: value for name, value in os.environ.items() if name != LEVEL}
    environment |= {LEVEL: level} if level else {}
    return subprocess.run([sys.executable, "-c", START + body], env=environment, capture_output=True, text=True)


def test_notes_are_left_out_and_errors_are_not():
    done = script(
        "os.write(2, b'E0000 00:00:1.2 33 disk.cc:1] full\\nany other line\\n')\n"
        "print('of Python', file=sys.stderr)\n"
        "import absl.logging; absl.logging.warning('absl')\n"
        "logging.getLogger('tensorflow').warning('retracing'); logging.getLogger('mine').warning('mine')\n"
        f"assert os.environ[{LEVEL!r}] == '2'\n"
    )
    assert done.returncode == 0
    expected = {"E0000 00:00:1.2 33 disk.cc:1] full", "any other line", "of Python", "WARNING:mine:mine"}
    assert {*done.stderr.splitlines()} == expected


def test_last_words_of_a_crash_are_read():
    done = script("os.write(2, b'F0000 no AVX\\n'); os.abort()\n")
    assert done.returncode < 0 and done.stderr == "F0000 no AVX\n"


def test_the_user_s_own_level_stands():
    done = script(f"print(os.environ[{LEVEL!r}])\n", level="0")
    assert len(done.stderr.splitlines()) == 2 and done.stdout == "0\n"
