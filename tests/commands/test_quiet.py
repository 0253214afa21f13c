"""Messages that stay off the screen, and messages that do not, in processes of their own."""

import os
import subprocess
import sys

import pytest

from keras_vit.commands.quiet import LEVEL
from tests.marks import slow

START = """
import logging, os, sys
sys.argv, sys.orig_argv = ["-m"], ["python", "-m", "keras_vit"]  # as there, without Keras
from keras_vit.commands.quiet import quiet
def said(*lines):
    for line in lines:
        os.write(2, line.encode() + b"\\n")  # as a library does
"""
NOTES = "'I0000 00:00:1.2  33 port.cc:153] oneDNN', 'WARNING: All log messages before absl::InitializeLog() is called'"


def run(*words, level=None):
    environment = {name: value for name, value in os.environ.items() if name != LEVEL}
    environment |= {LEVEL: level} if level else {}
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)


def script(body, level=None):
    return run("-c", START + body, level=level)


def test_notes_are_left_out_and_errors_are_not():
    done = script(
        "with quiet():\n"
        f"    said({NOTES}, 'E0000 00:00:1.2 33 disk.cc:1] full', 'any other line')\n"
        "    print('of Python', file=sys.stderr)\n"
        "    import absl.logging; absl.logging.warning('absl')\n"
        "    logging.getLogger('tensorflow').warning('retracing'); logging.getLogger('mine').warning('mine')\n"
        "    assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '2'\n"
        "print('after', file=sys.stderr); said('I0000 after')\n"
    )
    assert done.returncode == 0
    expected = {"E0000 00:00:1.2 33 disk.cc:1] full", "I0000 after", "after", "any other line", "of Python"}
    assert {*done.stderr.splitlines()} == {*expected, "WARNING:mine:mine"}


def test_last_words_of_a_crash_are_read():
    done = script(f"with quiet():\n    said({NOTES}, 'F0000 no AVX')\n    os.abort()\n")
    assert done.returncode < 0 and done.stderr == "F0000 no AVX\n"


def test_an_error_leaves_the_screen_as_it_was():
    done = script("with quiet():\n    raise ValueError('mended')\n")
    assert done.returncode == 1 and done.stderr.endswith("ValueError: mended\n")


def test_the_user_s_own_level_stands():
    done = script(f"with quiet():\n    said({NOTES})\nprint(os.environ['TF_CPP_MIN_LOG_LEVEL'])\n", level="0")
    assert len(done.stderr.splitlines()) == 2 and done.stdout == "0\n"


@slow
def test_a_command_is_quiet_and_a_recipe_of_your_own_finds_every_name(tmp_path):
    pytest.importorskip("tensorflow")
    recipe = tmp_path / "mine.py"
    recipe.write_text(
        "import keras_vit\nfrom keras_vit import Recipe, Optim\nfrom keras_vit.config import Data\n"
        "assert keras_vit.plots\nrecipe = Recipe(name='mine', model={'depth': 1}, data=Data(), optim=Optim(epochs=7))\n"
    )
    done = run("-m", "keras_vit", "show", str(recipe))
    assert "name = 'mine'" in done.stdout and "optim.epochs = 7" in done.stdout and not done.stderr
