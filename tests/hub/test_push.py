import numpy as np
import pytest

import keras_vit
from tests.hub.helpers import logits


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


def test_other_repositories_have_no_run(hub):
    hub.repositories["me/other"] = {"config.json": b"{}", "model.safetensors": b"x"}
    with pytest.raises(ValueError, match="must have a model of `push_to_hub`, .* Received: 'hf://me/other'"):
        keras_vit.load_run("hf://me/other")
    with pytest.raises(FileNotFoundError, match="There is no 'hf://me/none', or it is private"):
        keras_vit.load_run("hf://me/none")
