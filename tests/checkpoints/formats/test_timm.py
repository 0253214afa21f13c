import json
import math
import warnings

import numpy as np
import pytest

from keras_vit import ResNetStem, from_checkpoint
from keras_vit.checkpoints.formats import timm
from keras_vit.utils import resampling
from tests.checkpoints.helpers import arrays_of, write

pytestmark = pytest.mark.backend


def test_detect():
    assert timm.detect(arrays_of("timm_vit")) and not timm.detect(arrays_of("hf_vit"))


def test_authors_names():
    canonical = timm.canonical(["blocks.3.gamma_1", "register_tokens", "blocks.0.mlp.w12.bias", "blocks.0.mlp.w3.bias"])
    assert list(canonical) == ["blocks.3.ls1.gamma", "reg_token", "blocks.0.mlp.fc1.bias", "blocks.0.mlp.fc2.bias"]
    assert list(timm.canonical(["blocks.1.6.norm1.bias"])) == ["blocks.6.norm1.bias"]


def test_names_of_aimv2_s_authors():
    names = {
        "preprocessor.patchifier.proj.weight": "patch_embed.proj.weight",
        "preprocessor.patchifier.norm.weight": "patch_embed.norm.rms",
        "preprocessor.pos_embed": "pos_embed",
        "trunk.blocks.0.norm_1.weight": "blocks.0.norm1.rms",
        "trunk.blocks.0.mlp.fc1.weight": "blocks.0.mlp.fc1_g.weight",
        "trunk.blocks.0.mlp.fc3.weight": "blocks.0.mlp.fc1_x.weight",
        "trunk.blocks.0.mlp.fc2.weight": "blocks.0.mlp.fc2.weight",
        "trunk.post_trunk_norm.weight": "norm.rms",
    }
    assert timm.canonical(names) == {ours: theirs for theirs, ours in names.items()}
    assert timm.detect(["preprocessor.patchifier.proj.weight"])
    layer_norm = ["norm.weight", "norm.bias"]
    assert list(timm.canonical(layer_norm)) == layer_norm


def test_placeholders():
    assert timm.placeholders(dict(stem=None, final_norm="after"))["norm"] == "fc_norm"
    assert timm.placeholders(dict(stem=ResNetStem(()), final_norm="before"))["root"] == "patch_embed.backbone"
    assert timm.placeholders(dict(stem=ResNetStem((1,)), final_norm="before"))["root"] == "patch_embed.backbone.stem"


def test_frequencies_of_all_blocks_are_one_tensor():
    names = timm.canonical({"rope.freqs": (2, 3, 4, 8), "blocks.0.norm1.weight": (8,)})
    assert names["blocks.2.attn.rope.freqs"] == ("rope.freqs", 2, 1) and "rope.freqs" not in names
    with pytest.raises(ValueError, match="'rope.freqs' with 4 axes"):
        timm.canonical({"rope.freqs": (2, 3)})


def parallel_arrays(bias, rng):
    """Returns random arrays of one of timm's `ParallelScalingBlock`s: width 8, two heads, 12 hidden channels."""
    shapes = {
        "patch_embed.proj.weight": (8, 3, 4, 4), "patch_embed.proj.bias": (8,), "pos_embed": (1, 4, 8),
        "norm.weight": (8,), "norm.bias": (8,), "head.weight": (3, 8), "head.bias": (3,),
        "blocks.0.in_norm.weight": (8,), "blocks.0.in_norm.bias": (8,), "blocks.0.in_proj.weight": (36, 8),
        "blocks.0.q_norm.weight": (4,), "blocks.0.q_norm.bias": (4,),
        "blocks.0.k_norm.weight": (4,), "blocks.0.k_norm.bias": (4,),
        "blocks.0.attn_out_proj.weight": (8, 8), "blocks.0.attn_out_proj.bias": (8,),
        "blocks.0.mlp_out_proj.weight": (8, 12), "blocks.0.mlp_out_proj.bias": (8,), "blocks.0.ls.gamma": (8,),
        **({"blocks.0.in_proj.bias": (36,)} if bias else {"blocks.0.mlp_bias": (12,)}),
    }  # fmt: skip
    return {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


@pytest.mark.parametrize("bias", [True, False])
def test_parallel_blocks_by_their_formula(bias, tmp_path):
    """ViT-22B's, arXiv:2302.05442: one matrix makes the hidden channels, queries, keys and values, in this order."""
    rng = np.random.default_rng(0)
    arrays = parallel_arrays(bias, rng)
    own = {name.removeprefix("blocks.0."): array for name, array in arrays.items()}
    config = {"architecture": "vit_pwee_patch16_reg1_gap_256", "pretrained_cfg": {"input_size": [3, 8, 8]}}
    write(tmp_path / "model.safetensors", arrays)
    (tmp_path / "config.json").write_text(json.dumps(config))
    block = from_checkpoint(tmp_path).get_layer("block_0")

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * own[f"{name}.weight"] + own[f"{name}.bias"]

    x = rng.normal(size=(1, 4, 8)).astype("float32")
    fused = norm(x, "in_norm") @ own["in_proj.weight"].T + (own["in_proj.bias"] if bias else 0)
    hidden, *qkv = np.split(fused, [12, 20, 28], axis=-1)
    query, key, value = (part.reshape(4, 2, 4) for part in qkv)
    scores = np.exp(np.einsum("qhd,khd->hqk", norm(query, "q_norm"), norm(key, "k_norm")) / 2)
    joined = np.einsum("hqk,khd->qhd", scores / scores.sum(-1, keepdims=True), value).reshape(1, 4, 8)
    hidden = hidden + (0 if bias else own["mlp_bias"])
    hidden = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
    y = joined @ own["attn_out_proj.weight"].T + own["attn_out_proj.bias"]
    y = y + hidden @ own["mlp_out_proj.weight"].T + own["mlp_out_proj.bias"]
    np.testing.assert_allclose(np.asarray(block(x)), x + own["ls.gamma"] * y, rtol=1e-4, atol=1e-4)


def test_other_parallel_blocks_are_refused(tmp_path):
    arrays = parallel_arrays(True, np.random.default_rng(0))
    for other in ("blocks.0.out_proj.weight", "blocks.0.attns.0.attn.qkv.weight"):
        path = write(tmp_path / "file.safetensors", arrays | {other: np.zeros((8, 8), "float32")})
        with pytest.raises(ValueError, match=f"several attentions at once.* Received: '{other}'"):
            from_checkpoint(path)


@pytest.mark.parametrize(
    "others, method, mean",
    [
        ({"mask_token": (1, 24), "blocks.{i}.ls{j}.gamma": (24,)}, "bicubic-offset", 0.485),
        (
            {"mask_token": (1, 24), "blocks.{i}.ls{j}.gamma": (24,), "register_tokens": (1, 2, 24)},
            "bicubic-antialias",
            0.485,
        ),
        ({"head.mlp.0.weight": (8, 24), "head.last_layer.weight_v": (8, 8)}, "bicubic-offset", 0.485),
        ({}, "bicubic-antialias", 0.5),
    ],
    ids=["DINOv2", "DINOv2 with registers", "DINO", "ViT"],
)
def test_authors_positions_are_resampled_as_their_code_does(others, method, mean, tmp_path):
    arrays = {name: array for name, array in arrays_of("timm_vit").items() if not name.startswith("head.")}
    for name, shape in others.items():
        every = {name.format(i=i, j=j) for i in (0, 1) for j in (1, 2)}
        arrays |= dict.fromkeys(every, np.ones(shape, "float32"))
    path = write(tmp_path / "file.safetensors", arrays)
    model = from_checkpoint(path, num_heads=3, image_size=(40, 24))
    expected = resampling.resize_grid(arrays["pos_embed"][0, 1:], (3, 3), (5, 3), method)
    found = np.asarray(model.get_layer("encoder").position_embedding)[0]
    np.testing.assert_array_equal(found[-15:], expected)
    assert np.ravel(model.get_layer("rescale").mean)[0] == mean


def test_what_a_bare_file_does_not_show_is_said(tmp_path):
    """DINO's, MAE's and MoCo v3's files have the same tensors as timm's ViT."""
    arrays = {name: array for name, array in arrays_of("timm_vit").items() if not name.startswith("head.")}
    path, known = write(tmp_path / "file.safetensors", arrays), {"num_heads": 3, "mean": 0.5, "std": 0.5}
    for options, said in (
        ({"num_heads": 3}, r"mean=0.5 \(ViT's; files of the authors of DeiT, MAE, MoCo v3 and DINO have ImageNet's\)"),
        ({**known, "image_size": 40}, "resample='bicubic-antialias' .timm's; files of DINO's authors have 'bicubic-o"),
    ):
        with pytest.warns(UserWarning, match=said):
            from_checkpoint(path, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_checkpoint(path, **known)
        from_checkpoint(path, **known, image_size=40, resample="bicubic-offset")
