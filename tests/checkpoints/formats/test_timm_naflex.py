"""Files with NaFlexViT's names, made from timm's own names."""

import json

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, save_checkpoint
from keras_vit.checkpoints.formats import timm_naflex
from keras_vit.models.options import merged
from tests.checkpoints.helpers import filled, logits

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype("float32")


def written(folder, **options):
    """Returns a model, and the path of its file under NaFlexViT's names."""
    model = filled(**merged({"image_size": 32, "tokens": {"class_position": False}}, options))
    save_checkpoint(model, folder / "plain.safetensors", format="timm")
    arrays = safetensors.numpy.load_file(folder / "plain.safetensors")
    kernel, table = arrays.pop("patch_embed.proj.weight"), arrays.pop("pos_embed")
    arrays["embeds.proj.weight"] = kernel.transpose(0, 2, 3, 1).reshape(len(kernel), -1)
    arrays["embeds.pos_embed"] = table.reshape(1, 4, 4, -1)
    for old, new in {"patch_embed.proj.bias": "proj.bias", "cls_token": "cls_token", "reg_token": "reg_token"}.items():
        if old in arrays:
            arrays[f"embeds.{new}"] = arrays.pop(old)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    (folder / "naflex").mkdir()
    safetensors.numpy.save_file(arrays, folder / "naflex" / "model.safetensors")
    return model, folder / "naflex"


@pytest.mark.parametrize(
    "options",
    [
        dict(pooling="map", block={"gelu": "tanh"}),
        dict(
            pooling="gap", tokens={"class_token": False, "registers": 2}, final_norm="after", block={"layer_scale": 0.1}
        ),
        dict(tokens={"registers": 2}),
    ],
)
def test_it_is_the_plain_model(options, tmp_path):
    model, path = written(tmp_path, **options)
    if options.get("pooling") != "map":
        with pytest.raises(ValueError, match="without attention pooling cannot be loaded without timm's config"):
            from_checkpoint(path, num_heads=3)
        (path / "config.json").write_text(json.dumps({"architecture": "naflexvit_base_patch16_gap"}))
    again = from_checkpoint(path, num_heads=3)
    assert again.input_shape == (None, 32, 32, 3)
    np.testing.assert_allclose(logits(again, IMAGES), logits(model, IMAGES), atol=1e-5)
    wide = from_checkpoint(path, num_heads=3, image_size=(32, 56))
    assert wide.input_shape == (None, 32, 56, 3)


def test_the_configuration_s_size_is_not_the_table_s(tmp_path):
    _, path = written(tmp_path, pooling="map", block={"gelu": "tanh"})
    config = {
        "architecture": "naflexvit_base_patch16_siglip",
        "pretrained_cfg": {"input_size": [3, 384, 384], "mean": [0.5] * 3},
    }
    (path / "config.json").write_text(json.dumps(config))
    assert from_checkpoint(path, num_heads=3).input_shape == (None, 32, 32, 3)


@pytest.mark.parametrize("name", ["naflexvit_base_patch16_par_gap", "naflexvit_base_patch16_radio_v3"])
def test_other_positions_are_refused(name, tmp_path):
    _, path = written(tmp_path, pooling="gap", tokens={"class_token": False})
    (path / "config.json").write_text(json.dumps({"architecture": name}))
    with pytest.raises(ValueError, match=f"architecture='{name}'"):
        from_checkpoint(path)


def test_detect_and_patches():
    names = {"embeds.proj.weight", "embeds.pos_embed"}
    assert timm_naflex.FORMAT.detect(names) and not timm_naflex.WITH_ATTENTION_POOLING.detect(names)
    assert timm_naflex.WITH_ATTENTION_POOLING.detect(names | {"attn_pool.latent"})
    with pytest.raises(ValueError, match="squares of 3 channels. Received: 100 values"):
        timm_naflex.architecture({"embeds.proj.weight": (8, 100), "embeds.pos_embed": (1, 4, 4, 8)}, None)
