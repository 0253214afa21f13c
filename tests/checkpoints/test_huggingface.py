import json
import types

import pytest

from keras_vit.checkpoints import huggingface
from tests.checkpoints.helpers import GOLDEN, arrays_of

pytestmark = pytest.mark.backend


def read(case, config=None, processor=None, drop=()):
    shapes = {name: a.shape for name, a in arrays_of(case).items() if not name.startswith(tuple(drop) or "-")}
    shapes = {name: shapes[place] for name, place in huggingface.canonical(shapes).items()}
    config = json.loads((GOLDEN / case / "config.json").read_text()) | (config or {})
    return huggingface.architecture(shapes, types.SimpleNamespace(config=config, processor=processor or {}))


def test_detect():
    assert huggingface.detect(arrays_of("hf_vit")) and not huggingface.detect(arrays_of("timm_vit"))


def test_architecture():
    arguments, evaluation, origins = read("hf_vit")
    expected = dict(
        width=24, depth=2, num_heads=3, mlp_dim=48, epsilon=1e-12, gelu="exact", image_size=(24, 24), mean=0.5
    )
    assert {k: arguments[k] for k in expected} == expected
    assert evaluation == {"resize": "direct", "crop_pct": None, "interpolation": "bilinear", "antialias": True}
    assert origins["epsilon"] == "config.json" and origins["evaluation"] == "transformers' default"


def test_deit_with_two_heads_one_and_none():
    two, *_ = read("hf_deit_teacher")
    assert two["distilled"] and two["registers"] == 0 and two["num_classes"] == 7
    none, *_ = read("hf_deit_teacher", drop=("cls_classifier", "distillation_classifier"))
    assert none["distilled"] and none["num_classes"] == 0


def test_the_processor_s_configuration():
    processor = {"image_mean": [0.1] * 3, "image_std": [0.2] * 3, "do_center_crop": True, "resample": 3}
    processor |= {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}
    arguments, evaluation, origins = read("hf_vit", processor=processor)
    assert arguments["mean"] == [0.1] * 3 and origins["mean"] == "preprocessor_config.json"
    assert evaluation == {"resize": "crop", "crop_pct": 0.875, "interpolation": "bicubic", "antialias": True}
    assert read("hf_vit", processor={"size": 224, "crop_size": 192, "do_center_crop": True})[1]["crop_pct"] == 192 / 224


@pytest.mark.parametrize(
    "config, pattern",
    [(dict(hidden_size=32), "hidden_size 32, and the weights have 24"), (dict(hidden_act="relu"), "'relu'")],
)
def test_configurations_that_lie(config, pattern):
    with pytest.raises(ValueError, match=pattern):
        read("hf_vit", config)


def test_images_that_are_not_normalised():
    arguments, *_ = read("hf_vit", processor={"do_normalize": False})
    assert (arguments["mean"], arguments["std"]) == (0, 1)
    for other in ({"do_rescale": False}, {"rescale_factor": 1.0}):
        with pytest.raises(ValueError, match="must divide pixels by 255"):
            read("hf_vit", processor=other)


@pytest.mark.parametrize("act, gelu", [("gelu_new", "tanh"), ("gelu_pytorch_tanh", "tanh"), ("quick_gelu", "quick")])
def test_activations(act, gelu):
    assert read("hf_vit", dict(hidden_act=act))[0]["gelu"] == gelu
