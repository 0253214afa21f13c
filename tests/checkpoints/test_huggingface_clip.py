import pytest

from keras_vit.checkpoints import huggingface_clip
from keras_vit.checkpoints.tables import CLIP
from tests.checkpoints.helpers import read_hub

pytestmark = pytest.mark.backend


def read(case, **options):
    return read_hub(huggingface_clip, case, **options)


def test_image_towers():
    clip, evaluation, origins = read("hf_clip")
    expected = dict(class_token=True, pre_norm=True, pooling="token", num_classes=7, mean=CLIP["mean"], gelu="quick")
    assert {name: clip[name] for name in expected} == expected
    assert evaluation["resize"] == "crop" and evaluation["crop_pct"] == 1.0
    assert origins["text"].startswith("passed over: 22 tensors")
    siglip, evaluation, _ = read("hf_siglip")
    expected = dict(class_token=False, pre_norm=False, pooling="map", num_classes=0, mean=0.5, gelu="tanh")
    assert {name: siglip[name] for name in expected} == expected and evaluation["resize"] == "direct"
    assert read("hf_siglip", drop=("head",))[0]["pooling"] == "gap"
