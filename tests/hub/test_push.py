import dataclasses
import json

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.config import override
from keras_vit.models.inputs import metadata_of
from tests.small import small


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two steps on arrays, with a TFLite file."""
    folder = tmp_path_factory.mktemp("runs") / "cells"
    random = np.random.default_rng(0)
    arrays = (random.integers(0, 256, (16, 8, 8, 1)).astype("uint8"), np.arange(16) % 10)
    recipe = override(small(), {"optim.epochs": 1, "data.batch_size": 8, "optim.warmup_epochs": 0})
    keras_vit.fit(recipe, folder, train=arrays, validation=arrays, verbose=False)
    keras_vit.export_tflite(keras_vit.load_run(folder).model, folder / "model.tflite")
    return folder


def logits(model):
    images = np.random.default_rng(1).integers(0, 256, (4, *model.input_shape[1:])).astype("float32")
    return model.predict(images, verbose=0)


def test_a_run_comes_back_bit_for_bit(run, hub, tmp_path):
    url = keras_vit.push_to_hub(run, "me/cells", license="apache-2.0")
    assert url.startswith(hub.url) and "me/cells" in url
    files = hub.repositories["me/cells"]
    expected = {"README.md", "curves.png", "data.json", "history.csv", "keras_vit.json", "labels.txt"}
    assert expected | {"model.keras", "model.tflite", "recipe.json"} <= set(files)
    assert "machine.json" not in files and not any(name.startswith("state") for name in files)
    there, here = keras_vit.load_run("hf://me/cells@v1"), keras_vit.load_run(run)
    np.testing.assert_array_equal(logits(there.model), logits(here.model))
    assert there.class_names == here.class_names and there.recipe.task == here.recipe.task
    assert str(there.home) == "exports/cells"
    encoder = keras_vit.from_pretrained("hf://me/cells", num_classes=0)
    assert encoder.output_shape == (None, 16)
    assert keras_vit.class_names(keras_vit.from_pretrained("hf://me/cells")) == here.class_names


def test_the_card_is_what_the_search_of_the_hub_reads(run, tmp_path):
    library = pytest.importorskip("huggingface_hub")
    path = keras_vit.push_to_hub(run, "hf://me/cells", license="apache-2.0", folder=tmp_path / "new")
    card = library.ModelCard.load(f"{path}/README.md")
    assert (card.data.library_name, card.data.pipeline_tag) == ("keras", "image-classification")
    assert card.data.license == "apache-2.0" and "keras_vit" in card.data.tags
    assert {result.metric_type for result in card.data.eval_results} >= {"accuracy", "loss"}
    assert "hf://me/cells" in card.text and "| accuracy |" in card.text and "- `model.tflite`" in card.text


def test_an_encoder_alone(hub, tmp_path):
    model = keras_vit.vit("mu/4", image_size=16, num_classes=0)
    keras_vit.push_to_hub(model, "me/encoder")
    assert set(hub.repositories["me/encoder"]) == {"README.md", "keras_vit.json", "model.keras"}
    np.testing.assert_array_equal(logits(keras_vit.from_pretrained("hf://me/encoder")), logits(model))
    assert b"image-feature-extraction" in hub.repositories["me/encoder"]["README.md"]


def test_two_towers(hub):
    image = keras_vit.vit("mu/4", image_size=16, num_classes=8)
    text = keras_vit.text_tower(vocabulary=9, length=4, width=8, depth=1, num_heads=1, end=8, projection=8)
    model = keras_vit.two_towers(image, text)
    keras_vit.push_to_hub(model, "me/pair")
    again = keras_vit.from_pretrained("hf://me/pair", part="both")
    inputs = {"images": np.ones((1, 16, 16, 3), "float32"), "texts": np.array([[1, 2, 8, 0]])}
    np.testing.assert_array_equal(again.predict(inputs, verbose=0), model.predict(inputs, verbose=0))


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


@pytest.mark.parametrize("name", ["cells", "a/b/c", "", None, "https://h/a/b", "../x/y", "me /x"])
def test_a_repository_has_an_owner_and_a_name(name, run):
    with pytest.raises(ValueError, match="must be 'owner/name'. Received: repository="):
        keras_vit.push_to_hub(run, name)


def test_a_folder_with_files_is_left_alone(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="must be new or empty. Received: folder="):
        keras_vit.push_to_hub(run, "me/x", folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_who_may_not_write_is_told(run, hub):
    hub.forbids = True
    with pytest.raises(PermissionError, match="'me/x' cannot be written: .* Run: hf auth login"):
        keras_vit.push_to_hub(run, "me/x")
    assert hub.repositories == {}


def test_other_targets():
    with pytest.raises(TypeError, match="must be a model, a run or its path. Received: target=3"):
        keras_vit.push_to_hub(3, "me/x")


def test_a_damaged_download_is_refused(run, hub):
    keras_vit.push_to_hub(run, "me/cells")
    hub.repositories["me/cells"]["model.keras"] += b"x"
    with pytest.raises(ValueError, match=r"model.keras' is damaged or another file. SHA-256: expected \w{64}, found"):
        keras_vit.load_run("hf://me/cells")


def test_what_is_too_large_is_not_downloaded(run, hub, tmp_path):
    keras_vit.push_to_hub(run, "me/cells")
    hub.claims["model.keras"] = 2**40
    with pytest.raises(ValueError, match="must have 17,179,869,184 bytes at most. Received: 'model.keras' of 1,099"):
        keras_vit.load_run("hf://me/cells")
    assert not [*(tmp_path / "cache").rglob("model.keras")]


def test_what_keras_itself_publishes(hub, tmp_path):
    model = keras_vit.vit("mu/4", image_size=16, num_classes=3)
    metadata_of(model)["labels"] = ["a", "b", "c"]
    model.save(tmp_path / "folder", zipped=False)  # as model.save("hf://me/own") uploads it
    files = [path for path in (tmp_path / "folder").rglob("*") if path.is_file()]
    hub.repositories["me/own"] = {str(path.relative_to(tmp_path / "folder")): path.read_bytes() for path in files}
    for source in ("hf://me/own", tmp_path / "folder"):
        there = keras_vit.from_pretrained(source)
        np.testing.assert_array_equal(logits(there), logits(model))
        assert keras_vit.class_names(there) == ("a", "b", "c")
    assert keras_vit.load_run("hf://me/own").class_names == ("a", "b", "c")


def test_other_repositories_have_no_run(hub):
    hub.repositories["me/other"] = {"config.json": b"{}", "model.safetensors": b"x"}
    with pytest.raises(ValueError, match="must have a model of `push_to_hub`, .* Received: 'hf://me/other'"):
        keras_vit.load_run("hf://me/other")
    with pytest.raises(FileNotFoundError, match="There is no 'hf://me/none', or it is private"):
        keras_vit.load_run("hf://me/none")


def test_code_in_a_file_does_not_run(hub, tmp_path):
    inputs = keras.Input((16, 16, 3))
    keras.Model(inputs, keras.layers.Lambda(lambda x: x)(inputs)).save(tmp_path / "folder", zipped=False)
    files = [path for path in (tmp_path / "folder").rglob("*") if path.is_file()]
    hub.repositories["me/code"] = {str(path.relative_to(tmp_path / "folder")): path.read_bytes() for path in files}
    with pytest.raises(ValueError, match="(?i)lambda"):
        keras_vit.load_run("hf://me/code")
