import json

import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints import huggingface, huggingface_clip, huggingface_dinov2
from keras_vit.checkpoints.tables import IMAGENET, Assumed, Missing
from keras_vit.checkpoints.transformers_config import write_processor
from tests.checkpoints.helpers import arrays_of, read_hub, write

pytestmark = pytest.mark.backend


@pytest.mark.parametrize(
    "form, case, gelu, epsilon",
    [
        (huggingface, "hf_vit", "exact", 1e-12),
        (huggingface_dinov2, "hf_dinov2", "exact", 1e-6),
        (huggingface_clip, "hf_clip", "quick", 1e-5),
        (huggingface_clip, "hf_siglip", "tanh", 1e-6),
    ],
)
def test_without_config_json(form, case, gelu, epsilon):
    arguments, _, origins = read_hub(form, case, {})
    assert (arguments["gelu"], arguments["epsilon"], arguments["num_heads"]) == (gelu, epsilon, None)
    assert isinstance(origins["num_heads"], Missing)
    assert isinstance(origins["gelu"], Assumed) is (case == "hf_clip")


@pytest.mark.parametrize("case, kind", [("hf_clip", "clip"), ("hf_siglip", "siglip")])
def test_a_config_json_that_leaves_defaults_out(case, kind):
    arguments, *_ = read_hub(huggingface_clip, case, {"model_type": kind, "vision_config": {}})
    assert arguments["num_heads"] == 12 and arguments["gelu"] == {"clip": "quick", "siglip": "tanh"}[kind]


@pytest.mark.parametrize(
    "case, config",
    [
        ("hf_vit", {"model_type": "beit"}),
        ("hf_dinov2", {"model_type": "dinov3_vit"}),
        ("hf_clip", {"model_type": "altclip", "vision_config": {"model_type": "altclip_vision_model"}}),
        ("hf_siglip", {"model_type": "siglip2_vision_model"}),
    ],
)
def test_other_models_with_these_names_are_refused(case, config, tmp_path):
    write(tmp_path / "model.safetensors", arrays_of(case))
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="`model_type` must be one of"):
        from_checkpoint(tmp_path)


def test_the_processor_s_configuration():
    processor = {"image_mean": [0.1] * 3, "image_std": [0.2] * 3, "do_center_crop": True, "resample": 3}
    processor |= {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}
    arguments, evaluation, origins = read_hub(huggingface, "hf_vit", processor=processor)
    assert arguments["mean"] == [0.1] * 3 and origins["mean"] == "preprocessor_config.json"
    assert evaluation == {"resize": "crop", "crop_pct": 0.875, "interpolation": "bicubic", "antialias": True}
    assert (
        read_hub(huggingface, "hf_vit", processor={"size": 224, "crop_size": 192, "do_center_crop": True})[1][
            "crop_pct"
        ]
        == 192 / 224
    )


@pytest.mark.parametrize(
    "config, pattern",
    [(dict(hidden_size=32), "hidden_size 32, and the weights have 24"), (dict(hidden_act="relu"), "'relu'")],
)
def test_configurations_that_lie(config, pattern):
    with pytest.raises(ValueError, match=pattern):
        read_hub(huggingface, "hf_vit", config)


def test_images_that_are_not_normalised():
    arguments, *_ = read_hub(huggingface, "hf_vit", processor={"do_normalize": False})
    assert (arguments["mean"], arguments["std"]) == (0, 1)
    for other in ({"do_rescale": False}, {"rescale_factor": 1.0}):
        with pytest.raises(ValueError, match="must divide pixels by 255"):
            read_hub(huggingface, "hf_vit", processor=other)


@pytest.mark.parametrize("act, gelu", [("gelu_new", "tanh"), ("gelu_pytorch_tanh", "tanh"), ("quick_gelu", "quick")])
def test_activations(act, gelu):
    assert read_hub(huggingface, "hf_vit", dict(hidden_act=act))[0]["gelu"] == gelu


def test_masked_autoencoders_saw_imagenet_s_mean():
    for kind, mean in (("vit_mae", IMAGENET["mean"]), ("vit", 0.5)):
        assert read_hub(huggingface, "hf_vit", {"model_type": kind}, processor={})[0]["mean"] == mean


def test_processors_that_do_not_crop():
    processor = {"image_processor_type": "DPTImageProcessor", "size": {"height": 518, "width": 518}, "resample": 3}
    evaluation = read_hub(huggingface_dinov2, "hf_dinov2", processor=processor)[1]
    assert evaluation == {"resize": "direct", "crop_pct": None, "interpolation": "bicubic", "antialias": True}


def test_a_way_of_resizing_that_is_not_ours_is_named():
    """The model loads; `keras_vit.preprocess` says which ways it knows."""
    assert read_hub(huggingface, "hf_vit", processor={"resample": 1})[1]["interpolation"] == "lanczos"
    assert read_hub(huggingface, "hf_vit", processor={"resample": 9})[1]["interpolation"] == 9


def test_a_processor_that_crops_and_has_no_size():
    assert read_hub(huggingface, "hf_vit", processor={"do_center_crop": True})[1]["crop_pct"] == 224 / 256


def test_the_shorter_side_survives_a_round_trip():
    for edge, size in ((400, 224), (256, 224), (438, 384), (235, 224)):
        arguments = {"image_size": (size, size), "channels": 3, "mean": 0.5, "std": 0.5}
        arguments["evaluation"] = {"resize": "crop", "crop_pct": size / edge}
        written = write_processor("ViT", arguments)
        assert written["image_processor_type"] == "CLIPImageProcessor"  # that of ViT takes no shorter side
        assert written["size"] == {"shortest_edge": edge} and written["crop_size"] == {"height": size, "width": size}


@pytest.mark.parametrize(
    "processor, resize",
    [
        (
            {"size": 256, "crop_size": 224, "do_center_crop": True, "image_processor_type": "DeiTImageProcessor"},
            "squash",
        ),
        ({"size": 256, "crop_size": 224, "do_center_crop": True, "image_processor_type": "CLIPImageProcessor"}, "crop"),
        ({"size": {"height": 256, "width": 256}, "crop_size": 224, "do_center_crop": True}, "squash"),
    ],
)
def test_one_number_is_a_square_or_the_shorter_side_as_the_processor_takes_it(processor, resize):
    evaluation = read_hub(huggingface, "hf_vit", processor=processor)[1]
    assert evaluation["resize"] == resize and evaluation["crop_pct"] == 224 / 256
    arguments = {"image_size": (224, 224), "channels": 3, "mean": 0.5, "std": 0.5, "evaluation": evaluation}
    written = write_processor("DeiT", arguments)
    assert written["size"] == ({"height": 256, "width": 256} if resize == "squash" else {"shortest_edge": 256})
    assert read_hub(huggingface, "hf_vit", processor=written)[1] == evaluation | {"interpolation": "bilinear"}
