"""Models that a format does not have."""

from functools import partial

import pytest

from keras_vit import save_checkpoint, vit
from keras_vit.models.options import merged
from tests.checkpoints.helpers import unexpected
from tests.checkpoints.test_save import SMALL, SUFFIX

pytestmark = pytest.mark.backend

SCALED, GATED = {"layer_scale": 0.1}, {"swiglu": True}
TURNED = dict(rotary="dinov3", position=None, num_classes=0)
NO_SUCH_MODEL = [
    (dict(value_range=(0, 4095)), dict.fromkeys(("google", "timm", "huggingface"), "0 to 255. .* 4095")),
    (dict(block=SCALED), {"google": "no name for block_0/scale1/gamma"}),
    (dict(block=SCALED, tokens={"registers": 2}), {"huggingface": "gives registers no positions"}),
    (dict(block=SCALED, mlp_dim=50), {"huggingface": "Received: mlp_dim=50"}),
    (dict(block=SCALED, position=None), {"huggingface": "DINOv2 must have a class token and a table of positions"}),
    (
        dict(tokens={"pre_norm": True}, num_classes=0, block={"qkv_bias": False}),
        {"huggingface": "no model with block={'qkv_bias': False}"},
    ),
    (TURNED, {"huggingface": "must have layer scale"}),
    (dict(**TURNED, tokens={"registers": 2}), {"huggingface": "Received: .*layer_scale=None"}),
    (
        dict(rotary="dinov3"),
        {"timm": "timm has no model with rotary positions", "google": "no model with rotary='dinov3'"},
    ),
    (dict(tokens={"pre_norm": True}, position=None), {"huggingface": "must have a table of positions"}),
    (dict(pooling="map"), {"huggingface": "num_classes=0.* Received: num_classes=7"}),
    (
        dict(pooling="token+gap"),
        {"timm": "no model with pooling='token.gap'", "google": "no model with pooling='token.gap'"},
    ),
    (dict(block={"key_bias": False}), {"timm": "no model with biases of queries and values only"}),
    (
        dict(tokens={"registers": 2}),
        {"google": "no name for encoder/register_tokens", "huggingface": "no model with tokens={'registers': 2}"},
    ),
    (dict(block=GATED), dict.fromkeys(("google", "huggingface"), "no model with mlp_dim=48, block={'swiglu': True}")),
    (dict(pooling="gap", final_norm="after"), {"google": "no model with final_norm='after'"}),
    (dict(position=None), {"google": "no model with position=None"}),
    (dict(representation_size=8), {"timm": "no name for pre_logits"}),
    (dict(pooling="last"), {"timm": "no model with pooling='last'"}),
    (dict(pooling="map", block=GATED), {"timm": "no model with attention pooling and gated MLPs"}),
    (dict(tokens={"distilled": True, "registers": 1}), {"timm": "no model distilled with registers"}),
    (dict(pooling="gap"), {"huggingface": "a class token and a table of positions"}),
]


def test_models_that_a_format_has_not(tmp_path):
    calls = []
    for options, patterns in NO_SUCH_MODEL:
        model = vit(**merged(SMALL, {"norm": {"epsilon": 1e-6}}, options))
        for form, pattern in patterns.items():
            path = tmp_path / f"file{SUFFIX[form]}"
            path.write_bytes(b"before")
            calls.append((partial(save_checkpoint, model, path, format=form, overwrite=True), pattern))
    assert not unexpected(calls)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file.npz", "file.safetensors"]
    assert {file.read_bytes() for file in tmp_path.iterdir()} == {b"before"}
