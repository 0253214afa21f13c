import re
from functools import partial

import keras
import ml_dtypes
import numpy as np
import pytest

from keras_vit import from_checkpoint, load_weights, vit
from keras_vit.checkpoints import images
from tests.checkpoints.helpers import (
    CASES,
    GOLDEN,
    SMALL,
    arrays_of,
    assert_same_weights,
    file_of,
    io_of,
    logits,
    original,
    unexpected,
    weights,
    write,
)
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

GOOGLE, TIMM, HUB = "google_vit", "timm_vit", "hf_vit"


@pytest.mark.parametrize("case", [pytest.param(case, marks=slow_on_jax if "r50" in case else ()) for case in CASES])
def test_logits_are_the_originals(case):
    x, expected = io_of(case)
    assert np.abs(logits(original(case), x) - expected).max() <= 1e-4


@pytest.mark.parametrize("case", CASES)
def test_fills_a_model_of_the_same_arguments(case):
    model = original(case)
    copy = type(model).from_config(model.get_config())
    assert load_weights(copy, file_of(case)) is copy
    assert_same_weights(weights(copy), weights(model))


@pytest.mark.parametrize("own", [{"num_heads": 2}, {"over_prefix": True}])
def test_another_attention_pool_is_refused(own):
    model = vit(**{**SMALL, "num_classes": 0}, block={"gelu": "tanh"}, pooling="map", pool=own)
    with pytest.raises(ValueError, match="has pool.(num_heads None|over_prefix False), and the model "):
        load_weights(model, file_of("hf_siglip"))


@pytest.mark.parametrize(
    "prefix, newer, stacked, half",
    [
        ("opt/target/", False, False, False),
        ("params/", True, False, False),
        ("params/img/", True, True, True),
        ("", True, True, False),
    ],
)
def test_google_files_of_every_layout(prefix, newer, stacked, half, tmp_path):
    names = (
        {"MultiHeadDotProductAttention_1": "MultiHeadDotProductAttention_0", "LayerNorm_2": "LayerNorm_1",
         "MlpBlock_3": "MlpBlock_0"} if newer else {}
    )  # fmt: skip
    arrays = {re.sub("|".join(names) or "$^", lambda m: names[m[0]], k): v for k, v in arrays_of(GOOGLE).items()}
    if stacked:
        first = {k for k in arrays if "encoderblock_0/" in k}
        for name in first:
            both = [arrays.pop(name), arrays.pop(name.replace("block_0", "block_1"))]
            arrays[name.replace("encoderblock_0", "encoderblock")] = np.stack(both)
    if newer:  # big_vision keeps the class position in the class token
        position = arrays.pop("Transformer/posembed_input/pos_embedding")
        arrays["cls"], arrays["pos_embedding"] = arrays["cls"] + position[:, :1], position[:, 1:]
    if half:
        arrays = {k: v.astype(ml_dtypes.bfloat16) for k, v in arrays.items()}
    arrays = {prefix + k: v for k, v in arrays.items()}
    if prefix:
        arrays |= (
            {"opt/state/step": np.array(3), "params/txt/head/kernel": np.zeros((2, 2))} if prefix != "params/" else {}
        )
    model = from_checkpoint(write(tmp_path / "file.npz", arrays))
    x, expected = io_of(GOOGLE)
    assert np.abs(logits(model, x) - expected).max() <= (0.1 if half else 1e-4)
    assert model.get_layer("encoder").class_position is not newer


@pytest.mark.parametrize("prefix", ["vit.", ""])
@pytest.mark.parametrize("newer", [False, True])
def test_hugging_face_names_of_every_version(prefix, newer, tmp_path):
    arrays = arrays_of(HUB)
    rules = [
        (r"encoder\.layer\.", "layers."),
        (r"attention\.attention\.(q|k|v)(uery|ey|alue)", r"attention.\1_proj"),
        (r"attention\.output\.dense", "attention.o_proj"),
        (r"intermediate\.dense", "mlp.fc1"),
        (r"(layers\.\d+)\.output\.dense", r"\1.mlp.fc2"),
    ]
    renamed = {}
    for name, array in arrays.items():
        for pattern, replacement in rules if newer else ():
            name = re.sub(pattern, replacement, name)
        renamed[re.sub(r"^vit\.", prefix, name)] = array
    renamed |= {"embeddings.mask_token": np.zeros((1, 1, 24), "float32"), "pooler.dense.bias": np.zeros(24, "float32")}
    path = write(tmp_path / "model.safetensors", renamed)
    (tmp_path / "config.json").write_text((GOLDEN / HUB / "config.json").read_text())
    x, expected = io_of(HUB)
    assert np.abs(logits(from_checkpoint(path), x) - expected).max() <= 1e-4


def test_a_new_head():
    path = file_of(GOOGLE)
    model = from_checkpoint(path, num_classes=3)
    assert model.output_shape == (None, 3) and not weights(model)["head/kernel"].any()
    own = vit(**{**SMALL, "num_classes": 3})
    with pytest.raises(ValueError, match=r"head/kernel is \(24, 7\), not \(24, 3\).*head='new'"):
        load_weights(own, path)
    own.get_layer("head").bias.assign([1, 2, 3])
    load_weights(own, path, head="new")
    np.testing.assert_array_equal(weights(own)["head/bias"], [1, 2, 3])
    np.testing.assert_array_equal(weights(own)["norm/gamma"], weights(model)["norm/gamma"])
    with pytest.raises(ValueError, match="head='skip'"):
        load_weights(own, path, head="skip")


def test_the_representation_layer_goes_with_the_head():
    path = file_of("google_vit_representation")
    assert original("google_vit_representation").get_layer("pre_logits").units == 20
    fresh = vit(**{**SMALL, "num_classes": 3})
    with pytest.raises(ValueError, match="pre_logits/bias"):
        load_weights(vit(**SMALL), path)
    load_weights(fresh, path, head="new")
    wanted = vit(**SMALL, representation_size=20)
    with pytest.raises(ValueError, match="missing in the file: pre_logits"):
        load_weights(wanted, file_of(GOOGLE))
    load_weights(wanted, file_of(GOOGLE), head="new")


def test_a_model_without_a_head_leaves_the_source_s():
    model = from_checkpoint(file_of("timm_deit_distilled"), num_classes=0, num_heads=3)
    assert model.output_shape == (None, 24)
    load_weights(vit(**{**SMALL, "num_classes": 0}), file_of(GOOGLE))


def test_metadata_says_where_arguments_are_from():
    about = from_checkpoint(file_of(HUB)).get_layer("rescale").metadata
    assert about["format"] == "huggingface" and about["source"].endswith("checkpoint.safetensors")
    assert about["from"]["norm.epsilon"] == "config.json"
    about = from_checkpoint(file_of(TIMM), num_heads=3, metadata={"mine": 1}).get_layer("rescale").metadata
    assert about["from"]["num_heads"] == "given" and about["mine"] == 1
    crop = {"resize": "crop", "crop_pct": 0.9, "crop_offset": "round"}
    assert about["evaluation"] == {**crop, "interpolation": "bicubic", "antialias": True}


def test_a_model_of_another_function_warns():
    with pytest.warns(
        UserWarning, match=r"block={'gelu': 'exact'} \(the model: 'tanh'\), norm={'epsilon': 1e-12} \(the model"
    ):
        load_weights(vit(**SMALL), file_of(HUB))


def test_a_filled_model_knows_its_source():
    model = load_weights(vit(**SMALL), file_of(GOOGLE))
    about = model.get_layer("rescale").metadata
    assert about["format"] == "google" and about["evaluation"]["resize"] == "direct"
    with pytest.raises(ValueError, match="has 3 heads, and the model 2"):
        load_weights(vit(**{**SMALL, "num_heads": 2}, block={"gelu": "exact"}), file_of(HUB))


def test_bad_arguments_are_named():
    assert not unexpected(
        (partial(from_checkpoint, file_of(TIMM), **arguments), pattern)
        for arguments, pattern in [
            (dict(format="torch"), "format='torch'"),
            (dict(format="google"), "must be a Vision Transformer of google"),
            (dict(resample="nearest"), "resample='nearest'"),
            (dict(grid=3.5), "grid=3.5"),
            (dict(variant="B/16"), "no argument 'variant'"),
            (dict(imagesize=3), "no argument 'imagesize'. Did you mean 'image_size'"),
            (dict(num_heads=5), "width of 24 cannot be split into 5 heads"),
            (dict(), "No tensor shows the number of heads.*width 24 is published: pass num_heads"),
        ]
    )


def test_other_models_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"'plain', which lacks rescale, patches, encoder, block_0"):
        load_weights(keras.Sequential([keras.layers.Dense(1)], name="plain"), file_of(TIMM))
    path = write(tmp_path / "resnet.safetensors", {"conv1.weight": np.zeros((3, 3), "float32")})
    with pytest.raises(
        ValueError,
        match=r"of google, timm, huggingface, torchvision, openai, keras_hub. Received: a file with conv1.weight",
    ):
        from_checkpoint(path)


def test_the_size_of_an_uneven_source_stays_with_a_rule_of_the_caller(monkeypatch):
    """timm's models with patches of 14 at 384 pixels ignore the last rows and columns."""
    monkeypatch.setattr(images, "full_size", lambda *_: {"full_size": [26, 26]})
    model = from_checkpoint(file_of("timm_vit"), num_heads=3, metadata={"evaluation": {"resize": "crop"}})
    assert (
        model.get_layer("rescale").metadata["evaluation"] | {"resize": "crop", "full_size": [26, 26]}
        == (model.get_layer("rescale").metadata["evaluation"])
    )
