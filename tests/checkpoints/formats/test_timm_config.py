import csv
import math
import pathlib
from functools import partial

import pytest

from keras_vit import vit
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.formats import timm_config
from keras_vit.checkpoints.tables import Missing
from keras_vit.models.options import flat
from keras_vit.preparing.evaluation_rule import DEFAULT, before_crop
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend


def test_an_empty_configuration():
    arguments, evaluation, origins = timm_config.read({})
    assert arguments == origins == {} and evaluation["crop_pct"] == 0.9 and evaluation["resize"] == "crop"


@pytest.mark.parametrize("share, resize", [(1.0, "direct"), (0.9, "squash")])
def test_squashed_images_are_cropped_too_if_a_share_is_left(share, resize):
    evaluation = timm_config.read({"pretrained_cfg": {"crop_mode": "squash", "crop_pct": share}})[1]
    assert (evaluation["resize"], evaluation["crop_pct"]) == (resize, share)


def test_what_a_config_json_does_not_say_is_timm_s_default():
    """By timm.data.resolve_model_data_config of such folders; without the file the architecture's own rule holds."""
    for stated in ({}, {"tag": "a1", "crop_pct": None}):
        config = {"architecture": "vit_tiny_patch16_224", "pretrained_cfg": stated}
        arguments, evaluation, _ = timm_config.read(config)
        assert arguments["mean"] == [0.485, 0.456, 0.406] and arguments["std"] == [0.229, 0.224, 0.225]
        assert (evaluation["resize"], evaluation["crop_pct"]) == ("crop", 0.875)
        assert (evaluation["interpolation"], evaluation["crop_offset"]) == ("bicubic", "round")


def test_timm_only_rounds_down():
    """It resizes to floor(size / crop_pct), and 224 / 0.56 is below 400."""
    for length in (224, 235, 248, 256, 399, 400, 401):
        share = timm_config._crop_pct(224 / length, (224, 224), [length, length])
        assert math.floor(224 / share) == length and 0 < share <= 1
    assert timm_config._crop_pct(0.9, (16, 24), [17, 26]) == 0.9
    read = timm_config.read({"pretrained_cfg": {"crop_pct": 0.56, "input_size": [3, 224, 224]}})[1]
    assert before_crop((224, 224), read) == [399, 399]


def test_gelu_by_architecture():
    gelus = {
        "vit_base_patch16_224": "exact",
        "vit_base_patch32_clip_quickgelu_224": "quick",
        "vit_base_patch16_siglip_224": "exact",
        "vit_so400m_patch16_siglip_256": "tanh",
    }
    assert {name: timm_config.read({"architecture": name})[0]["block"]["gelu"] for name in gelus} == gelus


def test_heads_by_architecture():
    for name, heads in {
        "vit_giantopt_patch16_siglip_256": 16,
        "vit_7b_patch16_dinov3": 32,
        "vit_base_patch16_gap_224": 16,
        "test_vit": 2,
    }.items():
        arguments, _, origins = timm_config.read({"architecture": name})
        assert arguments["num_heads"] == heads and origins["num_heads"] == "config.json", name


def test_rotary_positions_by_architecture():
    turned = {"base": 10000.0, "centered": False, "columns_first": True, "interleaved": True}
    expected = {
        "vit_base_patch16_224": None,
        "vit_small_patch16_dinov3_qkvb": "dinov3",
        "vit_giant_patch16_lingbot": "dinov3",
        "vit_large_patch16_rope_ape_224": "rope-vit",
        "vit_betwixt_patch16_rope_reg4_gap_256": "eva02",
        "vit_small_patch16_rope_mixed_ape_224": "rope-vit-mixed",
        "eva02_large_patch14_clip_336": "eva02",
        "eva02_enormous_patch14_clip_224": None,
        "vit_pe_core_base_patch16_224": {**turned, "reference": 14, "offset": 1.0},
        "vit_pe_core_large_patch14_336": {**turned, "reference": 24, "offset": 1.0},
        "vit_pe_lang_large_patch14_448": {**turned, "reference": 32, "offset": 1.0},
        "vit_pe_spatial_gigantic_patch14_448": {**turned, "reference": 32},
    }
    found = {name: timm_config.read({"architecture": name})[0].get("rotary") for name in expected}
    assert found == expected


def test_pooling_is_read_in_either_place():
    assert timm_config.read({"global_pool": "avg"})[0]["pooling"] == "gap"
    assert timm_config.read({"global_pool": "avg", "model_args": {"global_pool": ""}})[0]["pooling"] == "none"


def test_models_that_cannot_be_loaded():
    assert not unexpected(
        (partial(timm_config.read, **(config if "config" in config else {"config": config})), pattern)
        for config, pattern in [
            ({"architecture": "vit_dlittle_patch16_reg1_gap_256"}, "architecture='vit_dlittle_patch16_reg1_gap_256'"),
            ({"model_args": {"act_layer": "relu"}}, "act_layer='relu'"),
            ({"model_args": {"act_layer": "silu"}}, "act_layer='silu'"),
            (dict(config={"model_args": {"act_layer": "gelu"}}, gated=True), "act_layer='gelu'"),
            ({"crop_mode": "border"}, "crop_mode. must be one of center, squash. Received: 'border'"),
            ({"global_pool": "avgmax"}, "global_pool='avgmax'"),
            ({"model_args": {"pool_include_prefix": True}}, "pool_include_prefix=True"),
            ({"model_args": {"norm_layer": "rmsnorm"}}, "norm_layer='rmsnorm'"),
        ]
    )


def test_an_older_file_has_all_in_one_place():
    config = {"architecture": "vit_tiny_patch16_224", "mean": [0.4] * 3, "crop_pct": 0.95, "interpolation": "bilinear"}
    arguments, evaluation, origins = timm_config.read({**config, "input_size": [3, 96, 96]})
    assert (arguments["mean"], arguments["image_size"], origins["mean"]) == ([0.4] * 3, (96, 96), "config.json")
    assert (evaluation["crop_pct"], evaluation["interpolation"]) == (0.95, "bilinear")


def test_an_architecture_of_another_width_does_not_show_its_heads():
    options = {"embed_dim": 384}
    origins = timm_config.read({"architecture": "vit_base_patch16_224", "model_args": options})[2]
    assert isinstance(origins["num_heads"], Missing)
    assert timm_config.read({"model_args": {**options, "num_heads": 12}})[0]["num_heads"] == 12


def test_gated_models_have_silu():
    assert "block" not in timm_config.read({"model_args": {"act_layer": "silu"}}, gated=True)[0]


def test_what_is_written_is_read():
    model = vit("mu/4", image_size=(8, 12), num_classes=3, block={"gelu": "quick"}, mean=0.3, std=(0.1, 0.2, 0.3))
    arguments = arguments_of(model) | {"evaluation": DEFAULT}
    _, files = timm_config.express(arguments, {})
    read, evaluation, _ = timm_config.read(files["config.json"])
    expected = {
        "num_heads": 2,
        "pooling": "token",
        "block": {"gelu": "quick"},
        "image_size": (8, 12),
        "mean": [0.3] * 3,
    }
    assert flat(read).items() >= flat(expected).items() and evaluation["resize"] == "direct"


def test_ratios_give_the_width_back():
    for mlp_dim, width in [(4304, 1152), (3072, 768), (7, 3), (100, 192)]:
        assert int(width * timm_config._ratio(mlp_dim, width)) == mlp_dim


def test_every_published_architecture_is_read_or_refused():
    path = pathlib.Path(__file__).parents[2] / "golden" / "timm_architectures.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))
    wrong = [row["architecture"] for row in rows if timm_config.known(row["architecture"]) != (row["read"] == "yes")]
    assert len(rows) > 400 and not wrong
