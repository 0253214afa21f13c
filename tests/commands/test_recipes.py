import re

import pytest

pytest.importorskip("tensorflow")

from tests.commands.helpers import run


def test_list_and_show(capsys):
    run("list")
    listed = capsys.readouterr().out
    assert re.search(r"digits +digits", listed) and re.search(r"B/16 +768 +12 +12 +86,567,656 +17.5", listed)
    run("show", "digits", "optim.epochs=7", "model.depth=2")
    shown = capsys.readouterr().out
    assert "optim.epochs = 7" in shown and "model.depth = 2" in shown and "parameters" in shown


def test_wrong_settings_are_an_error_before_any_is_shown(capsys):
    run("show", "digits", "model.depth=0", status=2)
    assert capsys.readouterr() == ("", "error: `depth` must be a positive integer. Received: depth=0\n")


def test_copy(tmp_path, capsys):
    run("copy", "digits", str(tmp_path))
    run("show", str(tmp_path / "digits.py"))
    run("copy", "digits", str(tmp_path), status=2)
    assert "exists" in capsys.readouterr().err
    run("copy", "digits", str(tmp_path / "mine.txt"), status=2)
    assert "'mine.txt" not in capsys.readouterr().out
    run("copy", "digits", str(tmp_path / "none" / "mine.py"), status=2)
    assert f"There is no folder {str(tmp_path / 'none')!r}." in capsys.readouterr().err


def test_a_recipe_is_a_program(tmp_path, capsys):
    run("copy", "digits", str(tmp_path))
    assert "A recipe is a program: run only those that you trust." in capsys.readouterr().out
