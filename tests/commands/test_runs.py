import os
import pathlib
import re

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from tests import picturefiles
from tests.commands.helpers import run as command
from tests.marks import slow


@pytest.fixture
def pictures(tmp_path):
    """A folder of three images, two of which are below, and one file that is no image."""
    folder = tmp_path / "pictures"
    (folder / "deep" / "deeper").mkdir(parents=True)
    for name in ("b.png", "deep/a.png", "deep/deeper/c.JPG"):
        pixels = np.random.default_rng(len(name)).integers(0, 256, (20, 24, 3))
        keras.utils.save_img(folder / name, pixels, scale=False, file_format="png")
    (folder / "notes.txt").write_text("no image")
    return folder


def test_predict_takes_files_and_folders(run, pictures, capsys):
    command("predict", str(run), str(pictures), str(pictures / "b.png"), "--top", "1")
    out, err = capsys.readouterr()
    files = [line.partition(": ")[0] for line in out.splitlines()]
    names = ["b.png", "deep/a.png", "deep/deeper/c.JPG", "b.png"]
    assert files == [str(pictures / name) for name in names] and not err
    assert all(re.fullmatch(r".*: \d [\d.]+%", line) for line in out.splitlines())


def test_a_bad_image_among_others_is_left_out_and_counted(run, pictures, capsys):
    (pictures / "deep" / "bad.png").write_text("no image")
    command("predict", str(run), str(pictures), status=1)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    first, last = err.splitlines()
    assert first.startswith(f"left out: '{pictures / 'deep' / 'bad.png'}' is not a PNG, JPEG, BMP, GIF or WebP image")
    assert last == "error: 1 of 4 images cannot be read."


def test_a_bad_image_alone_is_an_error(run, pictures, capsys):
    (pictures / "bad.png").write_text("no image")
    command("predict", str(run), str(pictures / "bad.png"), status=2)
    assert re.fullmatch(r"error: '.*bad.png' is not a PNG, JPEG, .*\n", capsys.readouterr().err)


def test_evaluate_takes_other_scores(run, capsys):
    command("evaluate", str(run), "task.metrics=kappa")
    assert "Cohen's kappa" in capsys.readouterr().out
    command("evaluate", str(run), "task.metrics=kapa", status=2)
    assert "quadratic_kappa" in capsys.readouterr().err


@slow
def test_steps_are_told_apart_from_what_is_found(run, tmp_path, capsys):
    command("evaluate", str(run))
    out, err = capsys.readouterr()
    (tmp_path / "model.tflite").write_text("old")
    assert err == f"Measuring {run / 'model.keras'}, and what was exported of it ...\n" and len(out.splitlines()) == 2
    command("export", str(run), "--to", str(tmp_path), "--overwrite")
    assert capsys.readouterr().err.startswith(f"Exporting {run / 'model.keras'} as SavedModel, TFLite ...\n")
    assert (tmp_path / "model.tflite").stat().st_size > 10_000 and (tmp_path / "saved_model").is_dir()


@slow
def test_every_command_takes_a_keras_file(tmp_path, pictures, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keras_vit.from_recipe("digits", {"model.depth": 1}).save("mine.keras")
    command("predict", "mine.keras", str(pictures / "b.png"))
    command("explain", "mine.keras", str(pictures))
    with pytest.warns(UserWarning, match="the same output for every image"):
        command("export", "mine.keras")
    assert (tmp_path / "mine" / "attention.png").exists()
    assert (tmp_path / "mine" / "model.tflite").exists()
    capsys.readouterr()
    for words in (["evaluate"], ["report"], ["explain"], ["export", "--quantize", "int8", "--overwrite"]):
        command(words[0], "mine.keras", *words[1:], status=2)
        assert "Pass a run directory, or " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, message",
    [
        ("evaluate runs/nothing", "There is no run 'runs/nothing'. Did you mean 'runs/nothin'?"),
        ("predict runs/nothing x.png", "There is no run 'runs/nothing'. Did you mean 'runs/nothin'?"),
        ("explain none/such", "There is no run 'none/such'."),
        ("demo mine.keras", "There is no file 'mine.keras'."),
        ("export runs", "'runs' is not a run directory: it has no recipe.json."),
        ("predict mnist x.png none.png", "There is no file 'x.png'."),
    ],
)
def test_what_is_not_there_is_named_before_any_work(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "nothin").mkdir(parents=True)
    (tmp_path / "runs" / "nothin" / "recipe.json").write_text("{}")
    command(*words.split(), status=2)
    begun = "Starting the page of mine.keras ...\n" if words == "demo mine.keras" else ""
    assert capsys.readouterr().err == f"{begun}error: {message}\n"


def test_a_name_that_is_no_utf_8_is_printed(tmp_path, capsys):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")
    pathlib.Path(path).write_bytes(picturefiles.EXACT["gray.png"])
    command("predict", "mnist", path)
    assert capsys.readouterr().out.startswith(f"{tmp_path}/\\xff.png: ")
