import json
import re
import types

import numpy as np
import pytest

from keras_vit import from_checkpoint, load_weights, vit
from keras_vit.checkpoints.formats import huggingface_dinov3
from keras_vit.checkpoints.tables import IMAGENET
from keras_vit.models.options import flat
from tests.checkpoints.helpers import (
    GOLDEN,
    SMALL,
    arrays_of,
    assert_same_weights,
    file_of,
    logits,
    original,
    read_hub,
    weights,
    write,
)

pytestmark = pytest.mark.backend

CASE = "hf_dinov3"


def test_architecture():
    arguments, evaluation, _ = read_hub(huggingface_dinov3, CASE)
    expected = dict(
        rotary="dinov3",
        position=None,
        tokens={"registers": 2},
        block={"qkv_bias": True, "key_bias": False},
        norm={"epsilon": 1e-5},
        **IMAGENET,
    )
    assert flat(arguments).items() >= flat(expected).items()
    assert evaluation["resize"] == "direct" and evaluation["interpolation"] == "bilinear"
    arguments, *_ = read_hub(huggingface_dinov3, CASE, {"rope_theta": 50.0})
    assert arguments["rotary"] == {"base": 50.0, "centered": True}


def test_any_grid_has_its_own_angles():
    model = from_checkpoint(file_of(CASE), image_size=(16, 40))
    assert_same_weights(weights(model), weights(original(CASE)))
    assert model.get_layer("block_0").attention.rotate.grid == (2, 5)


def test_a_model_with_other_positions_is_refused():
    model = vit(
        **{**SMALL, "num_classes": 0},
        tokens={"registers": 2},
        position=None,
        block={"layer_scale": 1.0, "key_bias": False},
    )
    before = weights(model)
    with pytest.raises(ValueError, match="has rotary 'dinov3', and the model None"):
        load_weights(model, file_of(CASE))
    assert_same_weights(weights(model), before)


def timm_s(arrays):
    """Returns the same tensors under timm's names."""
    names = {
        r"^embeddings.patch_embeddings\.": "patch_embed.proj.",
        r"^embeddings.register_tokens": "reg_token",
        r"^embeddings\.": "",
        r"^layer\.": "blocks.",
        r"attention\.([qv])_proj\.bias": r"attn.\1_bias",
        r"attention\.o_proj": "attn.proj",
        r"layer_scale([12])\.lambda1": r"gamma_\1",
        r"mlp\.up_proj": "mlp.fc1",
        r"mlp\.down_proj": "mlp.fc2",
    }
    found = {}
    for name, array in arrays.items():
        for pattern, other in names.items():
            name = re.sub(pattern, other, name)
        found[name] = array
    for i in range(2):
        parts = [found.pop(f"blocks.{i}.attention.{part}_proj.weight") for part in "qkv"]
        found[f"blocks.{i}.attn.qkv.weight"] = np.concatenate(parts)
    return {name: array for name, array in found.items() if name != "mask_token"}


def authors(arrays):
    """Returns timm's tensors under the names of DINOv3's authors: biases of keys are there, and masked."""
    names = {r"^reg_token": "storage_tokens", r"gamma_([12])": r"ls\1.gamma"}
    found = {"rope_embed.periods": np.float32([1, 10])}
    for name, array in arrays.items():
        for pattern, other in names.items():
            name = re.sub(pattern, other, name)
        found[name] = array
    for i in range(2):
        query, value = (found.pop(f"blocks.{i}.attn.{part}_bias") for part in "qv")
        found[f"blocks.{i}.attn.qkv.bias"] = np.concatenate([query, np.full_like(query, 7.0), value])
        found[f"blocks.{i}.attn.qkv.bias_mask"] = np.repeat(np.float32([1, 0, 1]), len(query))
    return found


def test_timm_s_names(tmp_path):
    write(tmp_path / "model.safetensors", timm_s(arrays_of(CASE)))
    with pytest.raises(ValueError, match="Put timm's config.json next to it"):
        from_checkpoint(tmp_path, num_heads=3)
    config = {"architecture": "vit_small_patch16_dinov3_qkvb", "global_pool": "token"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = from_checkpoint(tmp_path, num_heads=3, image_size=24)
    x = np.load(GOLDEN / CASE / "io.npz")
    np.testing.assert_allclose(logits(model, x["x"]), x["logits"], atol=1e-4)


def test_the_authors_names(tmp_path):
    arrays = authors(timm_s(arrays_of(CASE)))
    path = write(tmp_path / "dinov3.safetensors", arrays)
    model = from_checkpoint(path, image_size=24)  # the periods show the number of heads
    x = np.load(GOLDEN / CASE / "io.npz")
    np.testing.assert_allclose(logits(model, x["x"]), x["logits"], atol=1e-4)
    write(path, arrays | {"rope_embed.periods": np.float32([1, 100])})
    with pytest.raises(ValueError, match="Received: base 10000.0"):
        from_checkpoint(path, image_size=24)


@pytest.mark.parametrize("act", ["gelu", None])
def test_a_gate_must_be_silu(act, tmp_path):
    arrays = arrays_of(CASE)
    gates = {name.replace("up_proj", "gate_proj"): array for name, array in arrays.items() if "up_proj" in name}
    write(tmp_path / "model.safetensors", arrays | gates)
    config = {"model_type": "dinov3_vit", "num_attention_heads": 3} | ({"hidden_act": act} if act else {})
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="must be silu. Received: 'gelu'"):
        from_checkpoint(tmp_path)


def test_heads_of_published_widths():
    shapes = {name: array.shape for name, array in arrays_of(CASE).items()}
    for width, heads in ((1280, 20), (4096, 32)):
        shapes["embeddings.patch_embeddings.weight"] = (width, 3, 16, 16)
        checkpoint = types.SimpleNamespace(config={}, processor={})
        assert huggingface_dinov3.architecture(shapes, checkpoint)[0]["num_heads"] == heads
