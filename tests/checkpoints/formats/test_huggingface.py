import pytest

from keras_vit.checkpoints.formats import huggingface
from tests.checkpoints.helpers import arrays_of, read_hub

pytestmark = pytest.mark.backend


def test_detect():
    assert huggingface.detect(arrays_of("hf_vit")) and not huggingface.detect(arrays_of("timm_vit"))


def test_architecture():
    arguments, evaluation, origins = read_hub(huggingface, "hf_vit")
    expected = dict(
        width=24, depth=2, num_heads=3, mlp_dim=48, epsilon=1e-12, gelu="exact", image_size=(24, 24), mean=0.5
    )
    assert {k: arguments[k] for k in expected} == expected
    direct = {"resize": "direct", "crop_pct": None, "crop_offset": "floor"}
    assert evaluation == {**direct, "interpolation": "bilinear", "antialias": True}
    assert origins["epsilon"] == "config.json" and origins["evaluation"] == "transformers' default"


def test_deit_with_two_heads_one_and_none():
    two, *_ = read_hub(huggingface, "hf_deit_teacher")
    assert two["distilled"] and two["registers"] == 0 and two["num_classes"] == 7
    none, *_ = read_hub(huggingface, "hf_deit_teacher", drop=("cls_classifier", "distillation_classifier"))
    assert none["distilled"] and none["num_classes"] == 0


def test_one_without_a_class_token():
    arguments, *_ = read_hub(huggingface, "hf_ijepa")
    expected = dict(class_token=False, pooling="gap", gelu="exact", epsilon=1e-12, num_classes=7)
    assert {name: arguments[name] for name in expected} == expected
