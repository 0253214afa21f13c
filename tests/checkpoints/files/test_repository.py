import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.models.inputs import metadata_of
from tests.hub.helpers import logits


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


def test_code_in_a_file_does_not_run(hub, tmp_path):
    inputs = keras.Input((16, 16, 3))
    keras.Model(inputs, keras.layers.Lambda(lambda x: x)(inputs)).save(tmp_path / "folder", zipped=False)
    files = [path for path in (tmp_path / "folder").rglob("*") if path.is_file()]
    hub.repositories["me/code"] = {str(path.relative_to(tmp_path / "folder")): path.read_bytes() for path in files}
    with pytest.raises(ValueError, match="(?i)lambda"):
        keras_vit.load_run("hf://me/code")
