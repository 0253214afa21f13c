"""Files with the names of transformers' AIMv2, made by the table from models of ours."""

import json

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.formats import huggingface_aimv2
from keras_vit.checkpoints.save import _arrays
from tests.checkpoints.helpers import filled, logits

pytestmark = pytest.mark.backend

AIMV2 = dict(
    norm={"rms_norm": True, "epsilon": 1e-5},
    tokens={"patch_norm": True, "class_token": False},
    block={"proj_bias": False, "qkv_bias": False, "swiglu": True},
    pooling="gap",
)
IMAGES = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype("float32")


def written(folder, drop=(), more=None, config=None):
    """Returns a model, and the directory of its file under AIMv2's names."""
    model = filled(image_size=32, num_classes=0, **AIMV2)
    arrays = _arrays(model, huggingface_aimv2.FORMAT, arguments_of(model)) | (more or {})
    safetensors.numpy.save_file({k: v for k, v in arrays.items() if k not in drop}, folder / "model.safetensors")
    stated = {"model_type": "aimv2_vision_model", "hidden_act": "silu", "num_attention_heads": 3, "rms_norm_eps": 1e-5}
    (folder / "config.json").write_text(json.dumps(stated | (config or {})))
    return model, folder


def test_it_is_the_same_model(tmp_path):
    model, path = written(tmp_path)
    again = from_checkpoint(path)
    assert again.input_shape == (None, 32, 32, 3) and arguments_of(again)["block"]["proj_bias"] is False
    np.testing.assert_allclose(logits(again, IMAGES), logits(model, IMAGES), atol=1e-5)


def test_its_attention_pooling_is_left_out_and_said_so(tmp_path):
    _, path = written(tmp_path, more={"head.cls_token": np.zeros((1, 1, 24), "float32")})
    with pytest.warns(UserWarning, match="attention pooling, whose query has no matrix, is left out"):
        from_checkpoint(path)


@pytest.mark.parametrize(
    "case, message",
    [
        (dict(drop=("embeddings.position_embedding.weight",)), "native resolution"),
        (dict(config={"hidden_act": "gelu"}), "must be silu. Received: 'gelu'"),
        (dict(config={"model_type": "aimv3"}), "Received: 'aimv3'"),
        (dict(more={"encoder.layers.0.attention.out_proj.bias": np.zeros(24, "float32")}), "or in the MLP alone"),
    ],
)
def test_others_are_refused(case, message, tmp_path):
    _, path = written(tmp_path, **case)
    with pytest.raises(ValueError, match=message):
        from_checkpoint(path)


def test_detect():
    assert huggingface_aimv2.detect(["vision_model.embeddings.rms_norm.weight"])
    assert not huggingface_aimv2.detect(["embeddings.patch_embedding.weight"])
