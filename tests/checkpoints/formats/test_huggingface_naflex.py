"""Files with the names of transformers' SigLIP 2 for any aspect, made from those of SigLIP."""

import json

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, save_checkpoint
from keras_vit.checkpoints.formats import huggingface_clip, huggingface_naflex
from tests.checkpoints.helpers import filled, logits

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype("float32")


@pytest.mark.parametrize("model_type", ["siglip2_vision_model", None])
def test_it_is_the_plain_model(model_type, tmp_path):
    model = filled(image_size=32, pooling="map", block={"gelu": "tanh"}, tokens={"class_token": False}, num_classes=0)
    save_checkpoint(model, tmp_path, format="huggingface")
    arrays = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    name = f"vision_model.{huggingface_naflex.PATCHES}"
    arrays[name] = np.ascontiguousarray(arrays[name].transpose(0, 2, 3, 1).reshape(len(arrays[name]), -1))
    safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors")
    if model_type:
        config = json.loads((tmp_path / "config.json").read_text())
        del config["image_size"]
        (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": model_type, "num_patches": 16}))
    else:
        (tmp_path / "config.json").unlink()
    again = from_checkpoint(tmp_path, num_heads=3)
    assert again.input_shape == (None, 32, 32, 3)
    np.testing.assert_allclose(logits(again, IMAGES), logits(model, IMAGES), atol=1e-5)
    assert from_checkpoint(tmp_path, num_heads=3, image_size=(32, 56)).input_shape == (None, 32, 56, 3)


def test_detect():
    flat, convolution = {huggingface_naflex.PATCHES: (8, 48)}, {huggingface_naflex.PATCHES: (8, 3, 4, 4)}
    assert huggingface_naflex.FORMAT.detect(flat) and not huggingface_naflex.FORMAT.detect(convolution)
    assert huggingface_clip.FORMAT.detect(convolution)
