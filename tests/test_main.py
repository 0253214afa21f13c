import os
import pathlib
import re

import keras
import pytest

pytest.importorskip("tensorflow")

from keras_vit.__main__ import COMMANDS, main
from tests import picturefiles

SMALL = [
    "optim.epochs=1",
    "optim.warmup_epochs=0",
    "data.limit=64",
    "model.width=16",
    "model.depth=1",
    "model.mlp_dim=32",
]


def run(*words, status=0):
    if status:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        assert stop.value.code == status
    else:
        main(list(words))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0 and len(capsys.readouterr().out) > 150


def test_list_and_show(capsys):
    run("list")
    listed = capsys.readouterr().out
    assert re.search(r"digits +digits", listed) and re.search(r"B/16 +768 +12 +12 +86,567,656 +17.5", listed)
    run("show", "digits", "optim.epochs=7", "model.depth=2")
    shown = capsys.readouterr().out
    assert "optim.epochs = 7" in shown and "model.depth = 2" in shown and "parameters" in shown


def test_copy(tmp_path, capsys):
    run("copy", "digits", str(tmp_path))
    run("show", str(tmp_path / "digits.py"))
    run("copy", "digits", str(tmp_path), status=2)
    assert "exists" in capsys.readouterr().err
    run("copy", "digits", str(tmp_path / "mine.txt"), status=2)


def test_tour_then_each_command_on_the_run(tmp_path, capsys):
    workdir = tmp_path / "run"
    run("tour", "digits", *SMALL, "--workdir", str(workdir))
    out = capsys.readouterr().out
    for name in ("model.keras", "saved_model", "model.tflite"):
        assert re.search(rf"{name} +\d+\.\d\d%", out)
    assert {"attention.png", "curves.png"} <= {path.name for path in workdir.iterdir()}

    run("fit", "digits", *SMALL, "--workdir", str(workdir))
    run("evaluate", str(workdir), "--split", "all[90%:]")
    run("explain", str(workdir), "--to", str(tmp_path / "pictures"))
    run("report", str(workdir), "--most", "32")
    assert (workdir / "report.html").exists()
    run("predict", str(workdir), str(tmp_path / "pictures" / "attention.png"), "--top", "2")
    assert re.search(r"attention.png: \d [\d.]+%, \d [\d.]+%", capsys.readouterr().out)
    run("export", str(workdir), status=2)
    run("export", str(workdir), "--overwrite")
    run("export", str(workdir), "--to", str(tmp_path / "elsewhere"))


@pytest.mark.parametrize(
    "words, said",
    [
        (["fit", "digitz"], "There is no recipe 'digitz'. Did you mean 'digits'"),
        (["fit", "digits", "optim.epoch=3"], "Did you mean 'optim.epochs'"),
        (["fit", "digits", "optim.epochs=three"], "Received: 'three'"),
        (["show", "digits", "epochs"], "Received: 'epochs'"),
        (["report", "mnist", "--to", "report.pdf"], "ends in .html. Received: 'report.pdf'"),
        (["demo", "digits"], "'digits' has no trained weights"),
        (["demo", "mnist", "--port", "70000"], "Received: port=70000"),
        (["evaluate", "nowhere"], "There is no recipe 'nowhere'"),
        (["evaluate", "digits"], "'digits' has no trained weights"),
        (["predict", "mnist"], "No image file"),
        (["predict", "mnist", "nothing.png"], "nothing.png"),
    ],
)
def test_bad_words_are_one_sentence(words, said, capsys):
    run(*words, status=2)
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_checkpoints(capsys):
    run("checkpoints", "b/16", "augreg", "384")
    lines = capsys.readouterr().out.splitlines()
    assert re.search(r"B/16-augreg-i21k-i1k-384 +384 +1000 +86.01", "\n".join(lines)) and len(lines) < 8
    run("checkpoints", "L/32-orig", "--sources")
    assert "https://storage.googleapis.com/vit_models/" in capsys.readouterr().out
    run("checkpoints", "resnet", status=2)
    assert "No published checkpoint has resnet" in capsys.readouterr().err


def test_convert(tmp_path, capsys):
    source = pathlib.Path(__file__).parent / "golden" / "checkpoints" / "google_vit" / "checkpoint.npz"
    run("convert", str(source), str(tmp_path / "a.keras"), "image_size=48")
    assert "images of 48 x 48" in capsys.readouterr().out
    assert keras.models.load_model(tmp_path / "a.keras").input_shape == (None, 48, 48, 3)
    run("convert", str(source), str(tmp_path / "a.keras"), status=2)
    assert "exists. Choose another path, or pass --overwrite" in capsys.readouterr().err
    run("convert", str(source), str(tmp_path / "hub"), "num_classes=3", "--format", "huggingface")
    assert {path.name for path in (tmp_path / "hub").iterdir()} >= {"model.safetensors", "config.json"}
    run("convert", str(tmp_path / "hub"), str(tmp_path / "b.npz"), "--overwrite")
    run("convert", str(source), str(tmp_path / "timm"), status=2)
    assert "--format timm" in capsys.readouterr().err
    run("convert", str(tmp_path / "none.npz"), str(tmp_path / "c.keras"), status=2)
    assert "none.npz" in capsys.readouterr().err


def test_a_name_that_is_no_utf_8_is_printed(tmp_path, capsys):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")
    pathlib.Path(path).write_bytes(picturefiles.EXACT["grey.png"])
    run("predict", "mnist", path)
    assert capsys.readouterr().out.startswith(f"{tmp_path}/\\xff.png: ")
