import pytest

from keras_vit.checkpoints.formats import huggingface
from keras_vit.models.options import flat
from tests.checkpoints.helpers import arrays_of, read_hub

pytestmark = pytest.mark.backend


def test_detect():
    assert huggingface.detect(arrays_of("hf_vit")) and not huggingface.detect(arrays_of("timm_vit"))


def test_architecture():
    arguments, evaluation, origins = read_hub(huggingface, "hf_vit")
    expected = dict(
        width=24,
        depth=2,
        num_heads=3,
        mlp_dim=48,
        norm={"epsilon": 1e-12},
        block={"gelu": "exact"},
        image_size=(24, 24),
        mean=0.5,
    )
    assert flat(arguments).items() >= flat(expected).items()
    direct = {"resize": "direct", "crop_pct": None, "crop_offset": "floor"}
    assert evaluation == {**direct, "interpolation": "bilinear", "antialias": True}
    assert origins["norm.epsilon"] == "config.json" and origins["evaluation"] == "transformers' default"


def test_deit_with_two_heads_one_and_none():
    two, *_ = read_hub(huggingface, "hf_deit_teacher")
    assert two["tokens"]["distilled"] and two["tokens"]["registers"] == 0 and two["num_classes"] == 7
    none, *_ = read_hub(huggingface, "hf_deit_teacher", drop=("cls_classifier", "distillation_classifier"))
    assert none["tokens"]["distilled"] and none["num_classes"] == 0


def test_one_without_a_class_token():
    arguments, *_ = read_hub(huggingface, "hf_ijepa")
    expected = dict(
        tokens={"class_token": False}, pooling="gap", block={"gelu": "exact"}, norm={"epsilon": 1e-12}, num_classes=7
    )
    assert flat(arguments).items() >= flat(expected).items()
