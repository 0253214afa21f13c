import pytest

from keras_vit import ResNetStem
from keras_vit.checkpoints import timm
from tests.checkpoints.helpers import arrays_of

pytestmark = pytest.mark.backend


def test_detect():
    assert timm.detect(arrays_of("timm_vit")) and not timm.detect(arrays_of("hf_vit"))


def test_authors_names():
    canonical = timm.canonical(["blocks.3.gamma_1", "register_tokens", "blocks.0.mlp.w12.bias", "blocks.0.mlp.w3.bias"])
    assert list(canonical) == ["blocks.3.ls1.gamma", "reg_token", "blocks.0.mlp.fc1.bias", "blocks.0.mlp.fc2.bias"]


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
