import dataclasses
import json

import pytest

import keras_vit
from keras_vit.config import override
from keras_vit.models.inputs import metadata_of


def test_paths_stay_here(run, tmp_path):
    trained = keras_vit.load_run(run)
    there = override(trained.recipe, {"data.source": "folder:/home/someone/cells", "model.name": "a"})
    metadata_of(trained.model)["tokens"] = "/home/someone/words"
    path = keras_vit.push_to_hub(dataclasses.replace(trained, recipe=there), "me/x", folder=tmp_path / "new")
    assert json.loads((tmp_path / "new" / "recipe.json").read_text())["data"]["source"] == "folder:cells"
    everything = b"".join(file.read_bytes() for file in (tmp_path / "new").glob("*.[jmtc]*"))
    assert b"someone" not in everything and metadata_of(trained.model)["tokens"] == "/home/someone/words"
    again = keras_vit.load_run(path)  # the mark is that of the recipe that was written
    assert again.recipe.data.source == "folder:cells"


def test_what_names_this_machine_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("LOGNAME", "somebody")
    trained = keras_vit.load_run(run)
    metadata_of(trained.model)["note"] = "made in /data/somebody"
    with pytest.raises(ValueError, match=r"'model.keras: config.json' names it. Received: 'somebody'"):
        keras_vit.push_to_hub(trained.model, "me/x", folder=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
