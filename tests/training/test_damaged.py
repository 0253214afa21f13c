"""Damage that only a comparison with the model, or with the system's own error, tells."""

import pytest

from keras_vit import config, vit
from keras_vit.training import rundir

RECIPE = config.Recipe(name="x", model={"width": 8, "image_size": (4, 4)})
DATA = {"arrays": False, "train": "1", "validation": "2"}


def test_a_wrong_letter_in_a_class_name_is_damage(tmp_path):
    run = tmp_path / "run"
    rundir.claim(run, RECIPE, DATA, ("a", "b"))
    model = vit("mu/4", image_size=8, num_classes=2)
    metadata = model.get_layer("rescale").metadata
    metadata |= {"run": rundir.mark(RECIPE, DATA), "labels": ["a", "b"]}
    model.save(run / rundir.BEST)
    assert rundir.load(run, rundir.BEST)[2] == ("a", "b")
    (run / rundir.LABELS).write_text("a\nr\n")
    with pytest.raises(
        ValueError, match=r"labels.txt' is damaged: .* the 2 classes of the model. Received: 2, \('a', 'r'\)"
    ):
        rundir.load(run, rundir.BEST)


def test_a_model_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(rundir.files, "regular", refuse)
    with pytest.raises(PermissionError):
        rundir.read_model(tmp_path / "model.keras")
