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
    with pytest.raises(ValueError, match=r"'model.keras: config.json' names it. Received: '/somebody'"):
        keras_vit.push_to_hub(trained.model, "me/x", folder=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_words_are_content(tmp_path):
    """A vocabulary may have slashes."""
    image = keras_vit.vit("mu/4", image_size=16, num_classes=8)
    words = ["a", "/", "//", "./x", "~"]
    text = keras_vit.text_tower(
        vocabulary=9, length=4, width=8, depth=1, num_heads=1, end=8, projection=8, metadata={"words": words}
    )
    keras_vit.push_to_hub(keras_vit.two_towers(image, text), "me/pair", folder=tmp_path / "new")
    there = keras_vit.from_pretrained(tmp_path / "new", part="text")
    assert there.get_layer("words").metadata["words"] == words


def test_the_owner_may_have_the_name_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody")
    model = keras_vit.vit("mu/4", image_size=16, num_classes=2)
    assert keras_vit.push_to_hub(model, "somebody/cells", folder=tmp_path / "new") == str(tmp_path / "new")


def test_links_and_paths_in_exports_are_refused(run, tmp_path):
    trained = dataclasses.replace(keras_vit.load_run(run), home=tmp_path)
    (tmp_path / "model.onnx").symlink_to("/etc/hosts")
    with pytest.raises(ValueError, match="Exported files must not be links. Received: .*model.onnx"):
        keras_vit.push_to_hub(trained, "me/x", folder=tmp_path / "new")
    (tmp_path / "model.onnx").unlink()
    (tmp_path / "model.onnx").write_bytes(b"\0/data/someone/cells\0")
    there = dataclasses.replace(trained, recipe=override(trained.recipe, {"data.source": "folder:/data/someone/cells"}))
    with pytest.raises(ValueError, match="'model.onnx' names it. Received: '/data/someone/cells'"):
        keras_vit.push_to_hub(there, "me/x", folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_model_of_latents_names_an_autoencoder_that_readers_have(tmp_path):
    trained = keras_vit.load_run("mnist_latent_dit")
    here = dataclasses.replace(trained, recipe=override(trained.recipe, {"task.autoencoder": "/data/runs/latents"}))
    with pytest.raises(ValueError, match="publish that first, .*Received: task.autoencoder='/data/runs/latents'"):
        keras_vit.push_to_hub(here, "me/x", folder=tmp_path / "new")
