import types

import numpy as np
import pytest

from keras_vit.checkpoints.formats.timm_architecture import architecture
from keras_vit.checkpoints.tables import Assumed, Missing
from keras_vit.models.options import flat
from tests.checkpoints.helpers import arrays_of

pytestmark = pytest.mark.backend


def shapes_of(case, **more):
    return {name: array.shape for name, array in arrays_of(case).items()} | more


def read(shapes, config=None):
    return architecture(shapes, types.SimpleNamespace(shapes=shapes, config=config or {}, notes={}, path="x"))


@pytest.mark.parametrize(
    "case, expected",
    [
        (
            "timm_vit",
            dict(width=24, depth=2, num_heads=None, mlp_dim=48, pooling="token", final_norm="before", mean=0.5),
        ),
        ("timm_deit3", dict(block={"layer_scale": 1e-6}, tokens={"distilled": False}, mean=[0.485, 0.456, 0.406])),
        ("timm_deit_distilled", dict(tokens={"distilled": True}, std=[0.229, 0.224, 0.225])),
        ("timm_vit_avg_reg_ls", dict(tokens={"registers": 3, "class_token": True}, pooling="gap", final_norm="after")),
    ],
)
def test_architecture(case, expected):
    arguments, *_ = read(shapes_of(case))
    assert flat(arguments).items() >= flat(expected).items()


def test_kinds_that_tensors_show():
    block = "blocks.0."
    gated = shapes_of("timm_vit") | {f"{block}mlp.fc1.weight": (96, 24)}
    assert read(gated)[0]["block"]["swiglu"] is True
    normed = shapes_of("timm_vit") | {f"{block}attn.q_norm.weight": (8,)}
    assert read(normed)[0]["block"]["qk_norm"] is True and read(normed)[0]["num_heads"] == 3
    pooled = shapes_of("timm_vit") | {"attn_pool.latent": (1, 1, 24)}
    assert read(pooled, {"architecture": "vit_small_patch16_224"})[0]["pooling"] == "map"
    clip = shapes_of("timm_vit") | {"norm_pre.weight": (24,)}
    assert read(clip)[0]["tokens"]["pre_norm"] is True and read(clip)[0]["norm"]["epsilon"] == 1e-5
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
    assert arguments["num_heads"] == 4 and arguments["block"]["gelu"] == "tanh" and arguments["pooling"] == "gap"
    assert arguments["mean"] == [0.1] * 3 and arguments["image_size"] == (16, 32)
    crop = {"resize": "crop", "crop_pct": 0.95, "crop_offset": "round"}
    assert evaluation == {**crop, "interpolation": "bilinear", "antialias": True}
    assert origins["num_heads"] == origins["mean"] == "config.json"


def test_other_hybrids():
    with pytest.raises(ValueError, match="hybrids with group norm can be loaded"):
        read(shapes_of("timm_vit") | {"patch_embed.backbone.conv1.0.weight": (3, 3)})


def test_aimv2_shows_itself():
    shapes = {k: v for k, v in shapes_of("timm_vit").items() if not k.startswith(("cls", "head"))}
    norms = {k.replace("weight", "rms"): v for k, v in shapes.items() if "norm" in k and k.endswith("weight")}
    block = "blocks.0."
    shapes = {k: v for k, v in shapes.items() if "norm" not in k and k != f"{block}attn.proj.bias"} | norms
    shapes |= {"patch_embed.norm.rms": (24,), f"{block}mlp.fc1_g.weight": (48, 24)}
    arguments, _, origins = read(shapes)
    expected = dict(
        norm={"rms_norm": True, "epsilon": 1e-5},
        tokens={"patch_norm": True},
        block={"proj_bias": False, "swiglu": True},
        final_norm="before",
    )
    assert flat(arguments).items() >= flat(expected).items()
    assert isinstance(origins["num_heads"], Missing)  # 24 channels are not some heads of 128
    assert "block.gelu" in origins and not isinstance(origins["block.gelu"], Assumed)
    with pytest.raises(ValueError, match="Only AIMv2's norms may have no biases"):
        read(shapes | {"cls_token": (1, 1, 24)})


def test_norms_inside_a_sublayer():
    shapes, block = shapes_of("timm_vit"), "blocks.0."
    assert read(shapes)[0]["block"]["sub_norm"] is None
    of_mlp = shapes | {f"{block}mlp.norm.weight": (48,)}
    assert read(of_mlp)[0]["block"]["sub_norm"] == "mlp"
    assert read(of_mlp | {f"{block}attn.norm.weight": (24,)})[0]["block"]["sub_norm"] == "both"
    with pytest.raises(ValueError, match="a norm inside the attention and none inside the MLP"):
        read(shapes | {f"{block}attn.norm.weight": (24,)})


def test_relative_positions():
    shapes = {name: shape for name, shape in shapes_of("timm_vit").items() if name != "pos_embed"}
    table = {"blocks.0.attn.relative_position_bias_table": (5 * 5 + 3, 3)}
    arguments, _, origins = read(shapes | table)
    assert (arguments["position"], arguments["num_heads"]) == ("relative", 3)
    assert arguments["image_size"] == tuple(3 * np.array(arguments["patch_size"]))
    assert isinstance(origins["mean"], Assumed)  # BEiT's, or BEiT v2's
    config = {"architecture": "beit_base_patch16_224", "pretrained_cfg": {"input_size": [3, 80, 64]}}
    assert read(shapes | table, config)[0]["image_size"] == (80, 64)


def test_eva_02_of_its_authors_shows_its_positions():
    shapes = shapes_of("timm_vit") | {"blocks.0.attn.q_bias": (24,), "blocks.0.attn.v_bias": (24,)}
    with pytest.raises(ValueError, match="as EVA-02's, cannot be loaded without timm's config.json"):
        read(shapes)
    assert read(shapes | {"rope.freqs_cos": (256, 8)})[0]["rotary"] == "eva02"
    assert read(shapes, {"architecture": "eva02_tiny_patch14_224"})[0]["rotary"] == "eva02"
    assert read(shapes, {"architecture": "eva02_enormous_patch14_clip_224"})[0]["block"]["norm_order"] == "res-post"
