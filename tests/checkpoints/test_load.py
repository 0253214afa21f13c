import re

import keras
import ml_dtypes
import numpy as np
import pytest

import keras_vit
from keras_vit import from_checkpoint, load_weights, save_checkpoint, vit
from tests.checkpoints.helpers import (
    CASES,
    GOLDEN,
    SMALL,
    arrays_of,
    assert_same_weights,
    file_of,
    heads_of,
    io_of,
    logits,
    weights,
    write,
)

pytestmark = pytest.mark.backend

GOOGLE, TIMM, HUB = "google_vit", "timm_vit", "hf_vit"


@pytest.mark.parametrize("case", CASES)
def test_logits_are_the_originals(case):
    x, expected = io_of(case)
    found = logits(from_checkpoint(file_of(case), **heads_of(case)), x)
    assert np.abs(found - expected).max() <= 1e-4


@pytest.mark.parametrize("case", CASES)
def test_fills_a_model_of_the_same_arguments(case):
    model = from_checkpoint(file_of(case), **heads_of(case))
    twin = type(model).from_config(model.get_config())
    assert load_weights(twin, file_of(case)) is twin
    assert_same_weights(weights(twin), weights(model))


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


@pytest.mark.parametrize("size", [(48, 48), (40, 24), (16, 56)])
@pytest.mark.parametrize("case", [GOOGLE, TIMM, "timm_deit_distilled", "timm_vit_avg_reg_ls", HUB])
def test_any_image_size(case, size):
    model = from_checkpoint(file_of(case), image_size=size, **heads_of(case))
    assert model.input_shape == (None, *size, 3)
    prefix, source = model.get_layer("encoder").num_prefix, from_checkpoint(file_of(case), **heads_of(case))
    table, resized = (weights(m)["encoder/position_embedding"][0] for m in (source, model))
    np.testing.assert_array_equal(resized[:prefix], table[:prefix])
    method = {"google": "zoom", "timm": "bicubic-antialias", "hf": "bicubic"}[case.split("_")[0]]
    grid = size[0] // 8, size[1] // 8
    expected = keras_vit.resampling.resize_grid(table[prefix:], (3, 3), grid, method)
    np.testing.assert_allclose(resized[prefix:], expected, atol=1e-6)


def test_resampling_by_request():
    one, two = (from_checkpoint(file_of(GOOGLE), image_size=40, resample=m) for m in ("zoom", "jax-linear"))
    assert np.abs(weights(one)["encoder/position_embedding"] - weights(two)["encoder/position_embedding"]).max() > 1e-3


def test_a_rectangular_source_needs_its_grid(tmp_path):
    arrays = arrays_of(TIMM)
    arrays["pos_embed"] = np.random.default_rng(0).normal(size=(1, 1 + 2 * 6, 24)).astype("float32")
    path = write(tmp_path / "file.safetensors", arrays)
    with pytest.raises(ValueError, match=r"13 positions with 1 tokens.*grid=\(rows, columns\)"):
        from_checkpoint(path, num_heads=3)
    assert from_checkpoint(path, num_heads=3, grid=(2, 6)).input_shape == (None, 16, 48, 3)
    assert from_checkpoint(path, num_heads=3, grid=(2, 6), image_size=48).input_shape == (None, 48, 48, 3)
    as_it_is = from_checkpoint(path, num_heads=3, image_size=(16, 48))
    np.testing.assert_array_equal(weights(as_it_is)["encoder/position_embedding"], arrays["pos_embed"])


@pytest.mark.parametrize("case", [GOOGLE, TIMM, "google_r_ti"])
def test_channels_follow_the_published_rule(case):
    x, _ = io_of(case)
    grey = from_checkpoint(file_of(case), channels=1, **heads_of(case))
    three = from_checkpoint(file_of(case), **heads_of(case))
    one = x[..., :1]
    if case != "google_r_ti":  # whose first kernel is standardised after the sum
        np.testing.assert_allclose(logits(grey, one), logits(three, np.repeat(one, 3, -1)), atol=1e-5)
    kernel = "stem/root/kernel" if case == "google_r_ti" else "encoder/projection/kernel"
    five = from_checkpoint(file_of(case), channels=5, **heads_of(case))
    shape = (*(7, 7), 5, 64) if case == "google_r_ti" else (8, 8, 5, 24)
    wide, narrow = (weights(m)[kernel].reshape(*shape[:2], -1, shape[-1]) for m in (five, three))
    np.testing.assert_allclose(wide, narrow[:, :, [0, 1, 2, 0, 1]] * 3 / 5, atol=1e-6)


def test_another_patch_size():
    path = file_of(GOOGLE)
    model = from_checkpoint(path, patch_size=4, image_size=24)
    assert model.get_layer("encoder").output.shape == (None, 37, 24)
    other = vit(**{**SMALL, "patch_size": 4})
    with pytest.raises(ValueError, match=r"patches of 8 x 8 pixels, and the model of 4 x 4.*patches='resize'"):
        load_weights(other, path)
    assert_same_weights(weights(load_weights(other, path, patches="resize")), weights(model))
    by_name = from_checkpoint(path, patch_size=4, image_size=24, patches="jax-linear")
    kernel = weights(from_checkpoint(path))["encoder/projection/kernel"].reshape(8, 8, 3, 24)
    expected = keras_vit.resampling.resize_patches(kernel, (4, 4), "jax-linear").reshape(48, 24)
    np.testing.assert_allclose(weights(by_name)["encoder/projection/kernel"], expected, atol=1e-6)
    with pytest.raises(ValueError, match="patches='any'"):
        load_weights(other, path, patches="any")


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
    assert from_checkpoint(path).get_layer("pre_logits").units == 20
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


def test_positions_of_prefix_tokens_are_kept_or_folded():
    x, expected = io_of(TIMM)
    for class_position in (True, False):
        model = from_checkpoint(file_of(TIMM), class_position=class_position, num_heads=3)
        assert np.abs(logits(model, x) - expected).max() <= 1e-4
    x, expected = io_of("timm_deit3")
    model = from_checkpoint(file_of("timm_deit3"), class_position=True, num_heads=3)
    assert np.abs(logits(model, x) - expected).max() <= 1e-4


def test_metadata_says_where_arguments_are_from():
    about = from_checkpoint(file_of(HUB)).get_layer("rescale").metadata
    assert about["format"] == "huggingface" and about["source"].endswith("checkpoint.safetensors")
    assert about["from"]["epsilon"] == "config.json"
    about = from_checkpoint(file_of(TIMM), num_heads=3, metadata={"mine": 1}).get_layer("rescale").metadata
    assert about["from"]["num_heads"] == "given" and about["mine"] == 1
    assert about["evaluation"] == {"resize": "crop", "crop_pct": 0.9, "interpolation": "bicubic", "antialias": True}


def test_a_model_of_another_function_is_told_so():
    with pytest.warns(UserWarning, match=r"gelu='exact' \(the model: 'tanh'\), epsilon=1e-12 \(the model: 1e-06\)"):
        load_weights(vit(**SMALL), file_of(HUB))


def test_a_filled_model_knows_its_source():
    model = load_weights(vit(**SMALL), file_of(GOOGLE))
    about = model.get_layer("rescale").metadata
    assert about["format"] == "google" and about["evaluation"]["resize"] == "direct"
    with pytest.raises(ValueError, match="has 3 heads, and the model 2"):
        load_weights(vit(**{**SMALL, "num_heads": 2}, gelu="exact"), file_of(HUB))


def test_a_model_of_a_published_size_has_its_name(tmp_path):
    path = save_checkpoint(vit("mu/4", image_size=8, num_classes=3), tmp_path / "mu.npz", format="google")
    assert from_checkpoint(path).name == "vit_mu_4" and from_checkpoint(path, name="mine").name == "mine"


def test_a_square_grid_as_one_number():
    assert from_checkpoint(file_of(TIMM), grid=3, num_heads=3).input_shape == (None, 24, 24, 3)


def test_a_size_that_patches_do_not_divide(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of(TIMM))
    (tmp_path / "config.json").write_text('{"pretrained_cfg": {"input_size": [3, 29, 29]}}')  # timm leaves 5 pixels out
    assert from_checkpoint(tmp_path, num_heads=3).input_shape == (None, 24, 24, 3)


def test_other_precisions():
    model = from_checkpoint(file_of("google_r50ish"), dtype="mixed_bfloat16")
    assert model.get_layer("stem").units[0].conv1.compute_dtype == "bfloat16"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (dict(format="torch"), "format='torch'"),
        (dict(format="google"), "no Vision Transformer of google"),
        (dict(resample="nearest"), "resample='nearest'"),
        (dict(grid=3.5), "grid=3.5"),
        (dict(variant="B/16"), "no argument 'variant'"),
        (dict(imagesize=3), "no argument 'imagesize'. Did you mean 'image_size'"),
        (dict(num_heads=5), "width of 24 cannot be split into 5 heads"),
        (dict(), "No tensor shows the number of heads.*width 24: pass num_heads"),
    ],
)
def test_bad_arguments_are_named(arguments, said):
    with pytest.raises(ValueError, match=said):
        from_checkpoint(file_of(TIMM), **arguments)


def test_other_models_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"'plain', which lacks rescale, patches, encoder, block_0"):
        load_weights(keras.Sequential([keras.layers.Dense(1)], name="plain"), file_of(TIMM))
    path = write(tmp_path / "resnet.safetensors", {"conv1.weight": np.zeros((3, 3), "float32")})
    with pytest.raises(ValueError, match=r"no Vision Transformer of google, timm, huggingface. It has conv1.weight"):
        from_checkpoint(path)
