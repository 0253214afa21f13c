import csv

import pytest

pytest.importorskip("tensorflow")

from tests.commands.helpers import run as command
from tests.inspecting.conftest import cache as cache
from tests.inspecting.conftest import divided as divided


def test_findings_are_counted_and_written(divided, tmp_path, capsys):
    out = tmp_path / "out"
    command("inspect", str(divided), "--to", str(out))
    assert capsys.readouterr().out.splitlines() == [
        "pictures that cannot be read: 1",
        "the same picture on both sides of a split: 2",
        "equal pictures: 1",
        "nearly equal pictures: 1",
        "note: Near copies by vectors, labels and outliers: they need the index of a model, which the command "
        "embed writes",
        f"{out / 'findings.csv'}: 5 findings",
        f"{out / 'findings.html'}",
    ]
    assert sorted(path.name for path in out.iterdir()) == ["findings.csv", "findings.html"]
    command("inspect", str(divided), "--to", str(out), status=2)
    assert "Choose another path, or pass --overwrite" in capsys.readouterr().err


def test_a_list_is_a_table_for_recipes(divided, tmp_path, capsys):
    keep = tmp_path / "keep.csv"
    command("inspect", str(divided), "--list", "leaks", "near", "--to", str(keep))
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first == f"{keep}: 25 of 29 pictures"
    assert second.startswith(f"A recipe reads it as {divided / 'metadata.csv'}: data.source=folder:{divided} ")
    with open(keep, newline="") as file:
        kept = {row["file_name"]: (row["label"], row["split"]) for row in csv.DictReader(file)}
    assert kept["test/cat/copy.bmp"] == ("cat", "test") and "train/dog/small.jpg" not in kept
    assert not (tmp_path / "inspected").exists()
    command("inspect", str(divided), "--list", "leek", status=2)
    assert "A kind of findings must be known. Received: 'leek'" in capsys.readouterr().err


def test_an_index_finds_more(divided, tmp_path, capsys, monkeypatch):
    """By an index of shipped weights."""
    monkeypatch.chdir(tmp_path)
    command("embed", str(divided), "--model", "cifar10_mae", "--to", "photos.npz")
    capsys.readouterr()
    command("inspect", "photos.npz")
    lines = capsys.readouterr().out.splitlines()
    assert "the same picture on both sides of a split: 2" in lines and "pictures that cannot be read: 1" in lines
    assert [line[:12] for line in lines if line.startswith("note")] == ["note: Outlie", "note: Labels"]
    assert lines[-1] == "inspected/findings.html"
