import types

import pytest

from keras_vit import ResNetStem
from keras_vit.checkpoints import timm
from tests.checkpoints.helpers import arrays_of

pytestmark = pytest.mark.backend


def shapes_of(case, **more):
    return {name: array.shape for name, array in arrays_of(case).items()} | more


def read(shapes, config=None):
    return timm.architecture(shapes, types.SimpleNamespace(shapes=shapes, config=config or {}, notes={}, path="x"))


def test_detect():
    assert timm.detect(shapes_of("timm_vit")) and not timm.detect(shapes_of("hf_vit"))


def test_authors_names():
    canonical = timm.canonical(["blocks.3.gamma_1", "register_tokens", "blocks.0.mlp.w12.bias", "blocks.0.mlp.w3.bias"])
    assert list(canonical) == ["blocks.3.ls1.gamma", "reg_token", "blocks.0.mlp.fc1.bias", "blocks.0.mlp.fc2.bias"]


@pytest.mark.parametrize(
    "case, expected",
    [
        (
            "timm_vit",
            dict(width=24, depth=2, num_heads=None, mlp_dim=48, pooling="token", final_norm="before", mean=0.5),
        ),
        ("timm_deit3", dict(layer_scale=1e-6, distilled=False, mean=[0.485, 0.456, 0.406])),
        ("timm_deit_distilled", dict(distilled=True, std=[0.229, 0.224, 0.225])),
        ("timm_vit_avg_reg_ls", dict(registers=3, pooling="gap", final_norm="after", class_token=True)),
    ],
)
def test_architecture(case, expected):
    arguments, *_ = read(shapes_of(case))
    assert {k: arguments[k] for k in expected} == expected


def test_kinds_that_tensors_show():
    block = "blocks.0."
    gated = shapes_of("timm_vit") | {f"{block}mlp.fc1.weight": (96, 24)}
    assert read(gated)[0]["swiglu"] is True
    normed = shapes_of("timm_vit") | {f"{block}attn.q_norm.weight": (8,)}
    assert read(normed)[0]["qk_norm"] is True and read(normed)[0]["num_heads"] == 3
    pooled = shapes_of("timm_vit") | {"attn_pool.latent": (1, 1, 24)}
    assert read(pooled, {"architecture": "vit_small_patch16_224"})[0]["pooling"] == "map"
    clip = shapes_of("timm_vit") | {"norm_pre.weight": (24,)}
    assert read(clip)[0]["pre_norm"] is True and read(clip)[0]["epsilon"] == 1e-5
    bare = {k: v for k, v in shapes_of("timm_vit").items() if not k.startswith(("cls", "pos", "norm", "head"))}
    found = read(bare)[0]
    assert (found["pooling"], found["position"], found["final_norm"], found["num_classes"]) == ("gap", None, None, 0)


def test_the_configuration_goes_before_the_rules():
    config = {
        "architecture": "vit_small",
        "global_pool": "avg",
        "model_args": {"num_heads": 4, "act_layer": "gelu_tanh"},
        "pretrained_cfg": {"mean": [0.1] * 3, "crop_pct": 0.95, "interpolation": "bilinear", "input_size": [3, 16, 32]},
    }
    arguments, evaluation, origins = read(shapes_of("timm_vit"), config)
    assert arguments["num_heads"] == 4 and arguments["gelu"] == "tanh" and arguments["pooling"] == "gap"
    assert arguments["mean"] == [0.1] * 3 and arguments["image_size"] == (16, 32)
    assert evaluation == {"resize": "crop", "crop_pct": 0.95, "interpolation": "bilinear", "antialias": True}
    assert origins["num_heads"] == origins["mean"] == "config.json"


def test_other_hybrids():
    with pytest.raises(ValueError, match="hybrids with group norm can be loaded"):
        read(shapes_of("timm_vit") | {"patch_embed.backbone.conv1.0.weight": (3, 3)})


def test_placeholders():
    assert timm.placeholders(dict(stem=None, final_norm="after"))["norm"] == "fc_norm"
    assert timm.placeholders(dict(stem=ResNetStem(()), final_norm="before"))["root"] == "patch_embed.backbone"
    assert timm.placeholders(dict(stem=ResNetStem((1,)), final_norm="before"))["root"] == "patch_embed.backbone.stem"
