import pytest

from keras_vit.checkpoints.formats import huggingface_clip
from keras_vit.checkpoints.tables import CLIP
from keras_vit.models.options import flat
from tests.checkpoints.helpers import read_hub

pytestmark = pytest.mark.backend


def read(case, **options):
    return read_hub(huggingface_clip, case, **options)


def test_image_towers():
    clip, evaluation, origins = read("hf_clip")
    expected = dict(
        tokens={"class_token": True, "pre_norm": True},
        pooling="token",
        num_classes=7,
        mean=CLIP["mean"],
        block={"gelu": "quick"},
    )
    assert flat(clip).items() >= flat(expected).items()
    assert evaluation["resize"] == "crop" and evaluation["crop_pct"] == 1.0
    assert origins["text"].startswith("passed over: 22 tensors")
    siglip, evaluation, _ = read("hf_siglip")
    expected = dict(
        tokens={"class_token": False, "pre_norm": False}, pooling="map", num_classes=0, mean=0.5, block={"gelu": "tanh"}
    )
    assert flat(siglip).items() >= flat(expected).items() and evaluation["resize"] == "direct"
    assert read("hf_siglip", drop=("head",))[0]["pooling"] == "gap"


def test_the_newer_of_two_configurations_of_the_tower_counts():
    config = {"model_type": "clip", "vision_config_dict": {"hidden_act": "gelu", "num_attention_heads": 3}}
    for more in ({}, {"vision_config": {"hidden_act": "quick_gelu"}}):
        arguments, *_ = read("hf_clip", config={**config, **more})
        assert (arguments["block"]["gelu"], arguments["num_heads"]) == ("exact", 3)
