import json
from functools import partial

import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints.formats import huggingface, huggingface_clip, huggingface_dinov2
from keras_vit.checkpoints.formats.transformers_config import write_processor
from keras_vit.checkpoints.tables import CLIP, IMAGENET, Assumed, Missing
from keras_vit.preparing.evaluation_rule import DEFAULT
from tests.checkpoints.helpers import GOLDEN, arrays_of, read_hub, unexpected, write

pytestmark = pytest.mark.backend

REST = {"crop_offset": "floor", "interpolation": "bicubic", "antialias": True}


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
    assert (arguments["block"]["gelu"], arguments["norm"]["epsilon"], arguments["num_heads"]) == (gelu, epsilon, None)
    assert isinstance(origins["num_heads"], Missing)
    assert isinstance(origins["block.gelu"], Assumed) is (case == "hf_clip")


@pytest.mark.parametrize("case, kind", [("hf_clip", "clip"), ("hf_siglip", "siglip")])
def test_a_config_json_that_leaves_defaults_out(case, kind):
    arguments, *_ = read_hub(huggingface_clip, case, {"model_type": kind, "vision_config": {}})
    assert arguments["num_heads"] == 12 and arguments["block"]["gelu"] == {"clip": "quick", "siglip": "tanh"}[kind]


@pytest.mark.parametrize(
    "case, config",
    [
        ("hf_vit", {"model_type": "beit"}),
        ("hf_dinov2", {"model_type": "dinov3_vit"}),
        ("hf_clip", {"model_type": "groupvit", "vision_config": {"model_type": "groupvit_vision_model"}}),
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
    assert evaluation == {"resize": "crop", "crop_pct": 0.875, **REST}
    nested = {"image_processor": processor, "processor_class": "CLIPProcessor"}
    arguments, again, origins = read_hub(huggingface, "hf_vit", processor=nested)
    assert (arguments["mean"], origins["mean"], again) == ([0.1] * 3, "processor_config.json", evaluation)


@pytest.mark.parametrize(
    "config, pattern",
    [(dict(hidden_size=32), "hidden_size 32, and the weights have 24"), (dict(hidden_act="relu"), "'relu'")],
)
def test_configurations_that_lie(config, pattern):
    with pytest.raises(ValueError, match=pattern):
        read_hub(huggingface, "hf_vit", config)


def test_images_that_are_not_normalized():
    arguments, *_ = read_hub(huggingface, "hf_vit", processor={"do_normalize": False})
    assert (arguments["mean"], arguments["std"]) == (0, 1)
    for other in ({"do_rescale": False}, {"rescale_factor": 1.0}):
        with pytest.raises(ValueError, match="must divide pixels by 255"):
            read_hub(huggingface, "hf_vit", processor=other)


@pytest.mark.parametrize("act, gelu", [("gelu_new", "tanh"), ("gelu_pytorch_tanh", "tanh"), ("quick_gelu", "quick")])
def test_activations(act, gelu):
    assert read_hub(huggingface, "hf_vit", dict(hidden_act=act))[0]["block"]["gelu"] == gelu


def test_masked_autoencoders_saw_imagenet_s_mean():
    for kind, mean in (("vit_mae", IMAGENET["mean"]), ("vit", 0.5)):
        assert read_hub(huggingface, "hf_vit", {"model_type": kind}, processor={})[0]["mean"] == mean


def test_processors_that_do_not_crop():
    processor = {"image_processor_type": "DPTImageProcessor", "size": {"height": 518, "width": 518}, "resample": 3}
    evaluation = read_hub(huggingface_dinov2, "hf_dinov2", processor=processor)[1]
    assert evaluation == {"resize": "direct", "crop_pct": None, **REST}


def test_a_way_of_resizing_that_is_not_ours_is_named():
    """The model loads; `keras_vit.preprocess` says which ways it knows."""
    assert read_hub(huggingface, "hf_vit", processor={"resample": 1})[1]["interpolation"] == "lanczos"
    assert read_hub(huggingface, "hf_vit", processor={"resample": 9})[1]["interpolation"] == 9


SQUARE, CUT = {"height": 64, "width": 64}, {"do_center_crop": True, "crop_size": {"height": 64, "width": 64}}
READ = [  # what a file says, and what it means: by transformers' classes
    ({"image_processor_type": "CLIPImageProcessorFast"}, "crop", 1.0),
    ({"image_processor_type": "DeiTImageProcessor"}, "squash", 0.875),
    ({"image_processor_type": "BitImageProcessor", "size": 256}, "crop", 0.875),
    ({"feature_extractor_type": "CLIPFeatureExtractor", "size": 64, "crop_size": 64}, "crop", 1.0),
    ({"size": 80, **CUT}, "squash", 0.8),  # a number is a square for ViT
    ({"size": [72, 96], **CUT}, "squash", [64 / 72, 64 / 96]),
    ({"size": {"height": 72, "width": 96}, **CUT}, "squash", [64 / 72, 64 / 96]),
    ({"size": {"shortest_edge": 80}, **CUT}, "crop", 0.8),
    ({"size": SQUARE, "crop_size": 32}, "direct", None),  # nothing is cropped
    ({"do_center_crop": None, "do_pad": False, "do_reduce_labels": True, "do_convert_rgb": True}, "direct", None),
    ({"image_processor_type": "DPTImageProcessor", "size": SQUARE, "ensure_multiple_of": 16}, "direct", None),
]
REFUSED = [
    ({"do_center_crop": True}, "do_center_crop=True"),  # without a size: transformers fails too
    ({"do_resize": False, **CUT}, "do_resize=False"),
    ({"do_pad": True, "pad_size": SQUARE}, "do_pad=True, pad_size="),
    ({"do_flip_channel_order": True}, "do_flip_channel_order=True"),
    ({"rescale_offset": True}, "rescale_offset=True"),
    ({"crop_pct": 0.875}, "crop_pct=0.875"),
    ({"size": {"shortest_edge": 80, "longest_edge": 96}, **CUT}, "'longest_edge': 96"),
    ({"size": {"longest_edge": 96}}, "'longest_edge': 96"),
    ({"size": {"shortest_edge": 64}}, "'shortest_edge': 64"),  # a photograph would stay oblong
    ({"size": {"shortest_edge": 96}, "do_center_crop": True, "crop_size": [64, 96]}, r"crop_size=\[64, 96\]"),
    ({"size": {"shortest_edge": 48}, **CUT}, "'shortest_edge': 48"),  # a black border
    ({"size": {"height": 48, "width": 80}, **CUT}, "'height': 48"),
    ({"image_processor_type": "SiglipImageProcessor", "size": 64}, "size=64"),  # the shorter side, and no crop
    ({"image_processor_type": "DPTImageProcessor", "ensure_multiple_of": 14}, "ensure_multiple_of=14"),
    ({"image_processor_type": "ConvNextImageProcessor"}, "must be one of ViT, .*'ConvNextImageProcessor'"),
    ({"feature_extractor_type": "MobileViTFeatureExtractor"}, "'MobileViTFeatureExtractor'"),
]


def test_processors_are_read_as_transformers_does_or_refused():
    for processor, resize, share in READ:
        evaluation = read_hub(huggingface, "hf_vit", processor=processor)[1]
        assert (evaluation["resize"], evaluation["crop_pct"]) == (resize, share), processor
        assert evaluation["crop_offset"] == "floor" and evaluation["antialias"] is True
    calls = [(partial(read_hub, huggingface, "hf_vit", processor=file), pattern) for file, pattern in REFUSED]
    assert not unexpected(calls)


def test_what_a_file_does_not_say_is_its_class_s_default():
    arguments, evaluation, _ = read_hub(huggingface, "hf_vit", processor={"image_processor_type": "BitImageProcessor"})
    assert arguments["mean"] == CLIP["mean"] and evaluation["interpolation"] == "bicubic"
    arguments, evaluation, _ = read_hub(huggingface, "hf_vit", processor={"image_mean": None})
    assert arguments["mean"] == 0.5 and evaluation["interpolation"] == "bilinear"


def test_a_processor_that_keeps_the_aspect_ratio_is_a_warning(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of("hf_vit"))
    (tmp_path / "config.json").write_text((GOLDEN / "hf_vit" / "config.json").read_text())
    processor = {"image_processor_type": "YolosImageProcessor", "do_pad": True, "size": {"shortest_edge": 512}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    with pytest.warns(UserWarning, match="transformers keeps the aspect ratio.*resizes it to one size"):
        model = from_checkpoint(tmp_path)
    assert model.get_layer("rescale").metadata["evaluation"]["resize"] == "direct"


def test_the_nested_file_comes_first_from_a_folder(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of("hf_vit"))
    (tmp_path / "config.json").write_text((GOLDEN / "hf_vit" / "config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.1] * 3}))
    for outer, mean in (({"processor_class": "A"}, 0.1), ({"image_processor": {"image_mean": [0.2] * 3}}, 0.2)):
        (tmp_path / "processor_config.json").write_text(json.dumps(outer))
        assert from_checkpoint(tmp_path).get_layer("rescale").mean == [mean] * 3


def test_the_shorter_side_survives_a_round_trip():
    for edge, size in ((400, 224), (256, 224), (438, 384), (235, 224)):
        arguments = {"image_size": (size, size), "channels": 3, "mean": 0.5, "std": 0.5}
        arguments["evaluation"] = {**DEFAULT, "resize": "crop", "crop_pct": size / edge}
        written = write_processor("ViT", arguments)
        assert written["image_processor_type"] == "CLIPImageProcessor"  # that of ViT takes no shorter side
        assert written["size"] == {"shortest_edge": edge} and written["crop_size"] == {"height": size, "width": size}


def test_a_round_trip_keeps_every_rule_that_a_processor_can_say():
    pair = [224 / 256, 224 / 240]
    for resize, share in (("crop", 0.875), ("squash", 0.875), ("squash", pair), ("crop", 1.0), ("direct", None)):
        rule = {"resize": resize, "crop_pct": share, **REST}
        arguments = {"image_size": (224, 224), "channels": 3, "mean": 0.5, "std": 0.5, "evaluation": rule}
        for kind in ("ViT", "DeiT", "Bit", "CLIP", "Siglip", "DINOv3ViT"):
            assert read_hub(huggingface, "hf_vit", processor=write_processor(kind, arguments))[1] == rule
