import re

import pytest

pytest.importorskip("tensorflow")

from tests.commands.helpers import SMALL, run
from tests.marks import slow


@slow
def test_tour_then_each_command_on_the_run(tmp_path, capsys, eagerly):
    workdir = tmp_path / "run"
    run("tour", "digits", *SMALL, "--workdir", str(workdir))
    out = capsys.readouterr().out
    for name in ("model.keras", "saved_model", "model.tflite"):
        assert re.search(rf"{name}\s+(accuracy +)?\d+\.\d\d%", out)
    assert {"attention.png", "curves.png"} <= {path.name for path in workdir.iterdir()}

    run("fit", "digits", *SMALL, "--workdir", str(workdir))
    run("evaluate", str(workdir), "--split", "all[90%:]")
    run("explain", str(workdir), "--to", str(tmp_path / "pictures"))
    run("report", str(workdir), "--most", "32")
    assert (workdir / "report.html").exists()
    run("predict", str(workdir), str(tmp_path / "pictures" / "attention.png"), "--top", "2")
    assert re.search(r"attention.png: \d [\d.]+%, \d [\d.]+%", capsys.readouterr().out)
    run("export", str(workdir), status=2)


def test_fit_s_help_says_that_a_recipe_is_a_program(capsys):
    run("fit", "--help", status=0, leaves=True)
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "It is a program: run only those that you trust." in text


@pytest.mark.parametrize(
    "words, message",
    [
        ("no/mine.py", "There is no file 'no/mine.py'."),
        ("mine.py", "There is no file 'mine.py'."),
        ("somewhere/", "There is no file 'somewhere/'."),
        (
            ".",
            "A recipe must be a name or a Python file. Did you mean finetune_folder data.source=folder:., where each "
            "class must have its folder of images? Received: '.'",
        ),
    ],
)
def test_what_is_no_recipe_is_named(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("fit", words, status=2)
    assert capsys.readouterr().err == f"Reading {words} and its data ...\nerror: {message}\n"


@pytest.mark.parametrize(
    "changes, scores, said",
    [
        ((), [0.5, 0.75], "2 of 50 epochs, validation accuracy 75.00%"),
        (("optim.epochs=2",), [0.5, 0.75], "2 epochs, validation accuracy 75.00%"),
        (("optim.patience=1",), [0.75, 0.5], "2 of 50 epochs, validation accuracy 75.00% at best, 50.00% in the last"),
    ],
)
def test_fit_says_how_far_it_came(changes, scores, said, monkeypatch, capsys):
    history = {"loss": [2.0, 1.0], "val_accuracy": scores}
    monkeypatch.setattr("keras_vit.fit", lambda *_, **__: (None, history))
    run("fit", "digits", "optim.epochs=50", *changes)
    assert capsys.readouterr().out == f"runs/digits: {said}\n"


def test_fit_says_what_is_in_standard_deviations(monkeypatch, capsys, tmp_path):
    text = "from keras_vit.config import *\nrecipe = Recipe(name='two', model=dict(variant='Ti/16', image_size=32), "
    text += "task=Regress(names=('age', 'size')), data=Data(source='folder:none'), optim=Optim(epochs=2))\n"
    (tmp_path / "two.py").write_text(text)
    history = {"loss": [2.0, 1.0], "val_mae": [0.75, 0.5]}
    monkeypatch.setattr("keras_vit.fit", lambda *_, **__: (None, history))
    run("fit", str(tmp_path / "two.py"), "--workdir", str(tmp_path))
    assert capsys.readouterr().out.endswith(": 2 epochs, validation mean error 0.5000 standard deviations\n")
    run("fit", str(tmp_path / "two.py"), "--workdir", str(tmp_path), "optim.patience=1")
    said = ": 2 epochs, validation mean error 0.5000 standard deviations at best, 0.5000 in the last\n"
    assert capsys.readouterr().out.endswith(said)
