import os
import shutil

import numpy as np
import pytest

import keras_vit
from keras_vit.hub.content import content_of
from tests.hub.helpers import logits


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


def test_other_targets():
    with pytest.raises(TypeError, match="must be a model, a run or its path. Received: target=3"):
        keras_vit.push_to_hub(3, "me/x")


def test_an_export_of_earlier_weights_is_not_published(run, tmp_path):
    shutil.copytree(run, tmp_path / "again")
    weights = (tmp_path / "again" / "model.keras").stat().st_mtime
    for path in (tmp_path / "again").glob("model.tflite*"):
        os.utime(path, (weights - 60, weights - 60))
    with pytest.warns(
        UserWarning,
        match="model.tflite, model.tflite.json of .* are older than model.keras, and not published: export aga",
    ):
        assert content_of(tmp_path / "again").exports == ()
    assert [path.name for path in content_of(run).exports] == ["model.tflite", "model.tflite.json"]
