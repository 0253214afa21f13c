"""timm's files inside transformers' and OpenCLIP's."""

import json

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, save_checkpoint
from keras_vit.checkpoints import tables, wrapped
from tests.checkpoints.helpers import assert_same_weights, filled, weights

pytestmark = pytest.mark.backend

TOWER = {"timm_model_name": "vit_base_patch16_siglip_224", "timm_pool": "map", "image_size": 32}
PREPARED = {"mean": [0.1, 0.2, 0.3], "std": [0.4] * 3, "interpolation": "bicubic", "resize_mode": "squash"}


def wrap(folder, model, prefix, others=()):
    """Writes a timm file with a prefix, and other tensors beside."""
    save_checkpoint(model, folder / "plain.safetensors", format="timm")
    arrays = safetensors.numpy.load_file(folder / "plain.safetensors")
    (folder / "plain.safetensors").unlink()
    arrays = {f"{prefix}{name}": array for name, array in arrays.items()}
    safetensors.numpy.save_file(
        arrays | dict.fromkeys(others, np.zeros(2, "float32")), folder / "open_clip_model.safetensors"
    )
    return folder


def test_open_clip(tmp_path):
    model = filled(pooling="map", gelu="tanh", num_classes=0, class_token=False, image_size=32)
    path = wrap(tmp_path, model, "visual.trunk.", ["text.token_embedding.weight", "logit_scale"])
    config = {"model_cfg": {"vision_cfg": TOWER}, "preprocess_cfg": PREPARED}
    (path / wrapped.OPEN_CLIP).write_text(json.dumps(config))
    again = from_checkpoint(path, num_heads=3)
    assert_same_weights(weights(again), weights(model))
    rescale = again.get_layer("rescale")
    assert again.input_shape == (None, 32, 32, 3) and list(rescale.mean) == [0.1, 0.2, 0.3]
    assert rescale.metadata["evaluation"]["resize"] == "direct"


def test_transformers_wrapper(tmp_path):
    model = filled(image_size=32, num_classes=7)
    path = wrap(tmp_path, model, "timm_model.")
    config = {"architecture": "vit_tiny_patch16_224", "model_type": "timm_wrapper", "model_args": {"num_heads": 3}}
    (path / "config.json").write_text(json.dumps(config))
    assert_same_weights(weights(from_checkpoint(path)), weights(model))


@pytest.mark.parametrize(
    "config, message",
    [
        ({"model_cfg": None}, "open_clip_config.json' cannot be read"),
        ({"model_cfg": {"vision_cfg": TOWER}, "preprocess_cfg": {"resize_mode": "longest"}}, "Received: 'longest'"),
    ],
)
def test_its_configuration_is_checked(config, message, tmp_path):
    path = wrap(tmp_path, filled(image_size=32), "visual.trunk.")
    (path / wrapped.OPEN_CLIP).write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message):
        from_checkpoint(path)
    assert wrapped.of_open_clip({"model_cfg": {"vision_cfg": TOWER}})["pretrained_cfg"]["mean"] == tables.CLIP["mean"]


def test_nothing_else_is_unwrapped():
    assert wrapped.prefix_of(["patch_embed.proj.weight"]) == "" and wrapped.of_open_clip({"model_cfg": {}}) == {}
