import pathlib
import re

import keras
import pytest

pytest.importorskip("tensorflow")

from tests.commands.helpers import run


def test_checkpoints(capsys):
    run("checkpoints", "b/16", "augreg", "384")
    lines = capsys.readouterr().out.splitlines()
    assert re.search(r"B/16-augreg-i21k-i1k-384 +384 +1000 +86.01", "\n".join(lines)) and len(lines) < 8
    run("checkpoints", "L/32-orig", "--sources")
    assert "https://storage.googleapis.com/vit_models/" in capsys.readouterr().out
    run("checkpoints", "resnet", status=2)
    assert "No published checkpoint has resnet" in capsys.readouterr().err


def test_convert(tmp_path, capsys):
    source = pathlib.Path(__file__).parents[1] / "golden" / "checkpoints" / "google_vit" / "checkpoint.npz"
    run("convert", str(source), str(tmp_path / "a.keras"), "image_size=48")
    assert "images of 48 x 48" in capsys.readouterr().out
    assert keras.models.load_model(tmp_path / "a.keras").input_shape == (None, 48, 48, 3)
    run("convert", str(source), str(tmp_path / "a.keras"), status=2)
    assert "exists. Choose another path, or pass --overwrite" in capsys.readouterr().err
    run("convert", "nowhere.npz", str(tmp_path / "a.keras"), status=2)
    assert "a.keras' exists" in capsys.readouterr().err  # before the source is looked for
    with pytest.warns(UserWarning, match="other images than `preprocess`: it does not record antialias=False"):
        run("convert", str(source), str(tmp_path / "hub"), "num_classes=3", "--format", "huggingface")
    assert {path.name for path in (tmp_path / "hub").iterdir()} >= {"model.safetensors", "config.json"}
    run("convert", "nowhere.npz", str(tmp_path / "hub"), "--format", "huggingface", status=2)
    assert "model.safetensors' exists" in capsys.readouterr().err
    run("convert", str(tmp_path / "hub"), str(tmp_path / "b.npz"), "--overwrite")
    run("convert", str(source), str(tmp_path / "timm"), status=2)
    assert "--format timm" in capsys.readouterr().err
    run("convert", str(tmp_path / "none.npz"), str(tmp_path / "c.keras"), status=2)
    assert "none.npz" in capsys.readouterr().err
