import sys

import pytest

from keras_vit.__main__ import COMMANDS
from keras_vit.commands import helping
from tests.commands.helpers import run


@pytest.mark.parametrize("width", [60, 80, 132])
def test_lines_of_help_fit_the_terminal(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    for words in ([], *([command] for command in COMMANDS)):
        run(*words, "--help", leaves=True)
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("usage: ")
        assert not [line for line in lines if len(line) > width], words


def test_boxes_stay_and_what_belongs_together_is_not_parted():
    box = f"│ {'x' * 60} │"
    text = f"usage: program [--first A] [--second B]\n\n{box}\nsome words that are many\n"
    assert helping.broken(text, 25) == (
        f"usage: program\n       [--first A]\n       [--second B]\n\n{box}\nsome words that are many\n"
    )
    assert helping.broken("one, two\n", 80) == "one, two\n"


def test_help_for_a_terminal_keeps_its_colors(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    kept = helping.Kept(sys.stdout)
    assert kept.isatty() and kept.encoding == sys.stdout.encoding


def test_what_asks_for_no_help_is_printed_at_once(capsys):
    with helping.wrapped(["list"]):
        print("x" * 200)
        assert capsys.readouterr().out == "x" * 200 + "\n"
