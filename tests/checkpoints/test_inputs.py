import numpy as np
import pytest

import keras_vit
from keras_vit import from_checkpoint, load_weights, vit
from tests.checkpoints.helpers import (
    SMALL,
    arrays_of,
    assert_same_weights,
    file_of,
    heads_of,
    io_of,
    logits,
    original,
    weights,
    write,
)
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

GOOGLE, TIMM, HUB = "google_vit", "timm_vit", "hf_vit"
SIZES = [(case, size) for case in (GOOGLE, TIMM, HUB) for size in [(40, 24), (16, 56)]]
SIZES += [(GOOGLE, (48, 48)), ("timm_deit_distilled", (40, 24)), ("timm_vit_avg_reg_ls", (16, 56))]


@pytest.mark.parametrize("case, size", SIZES)
def test_any_image_size(case, size):
    model = from_checkpoint(file_of(case), image_size=size, **heads_of(case))
    assert model.input_shape == (None, *size, 3)
    prefix = model.get_layer("encoder").num_prefix
    table, resized = (weights(m)["encoder/position_embedding"][0] for m in (original(case), model))
    np.testing.assert_array_equal(resized[:prefix], table[:prefix])
    method = {"google": "zoom", "timm": "bicubic-antialias", "hf": "bicubic"}[case.split("_")[0]]
    grid = size[0] // 8, size[1] // 8
    expected = keras_vit.utils.resampling.resize_grid(table[prefix:], (3, 3), grid, method)
    np.testing.assert_allclose(resized[prefix:], expected, atol=1e-6)


def test_resampling_by_request():
    one, two = (from_checkpoint(file_of(GOOGLE), image_size=40, resample=m) for m in ("zoom", "jax-linear"))
    assert np.abs(weights(one)["encoder/position_embedding"] - weights(two)["encoder/position_embedding"]).max() > 1e-3


def test_a_rectangular_source_needs_its_grid(tmp_path):
    arrays = arrays_of(TIMM)
    arrays["pos_embed"] = np.random.default_rng(0).normal(size=(1, 1 + 2 * 6, 24)).astype("float32")
    path = write(tmp_path / "file.safetensors", arrays)
    with pytest.raises(ValueError, match=r"13 positions with 1 prefix tokens.*grid=\(rows, columns\)"):
        from_checkpoint(path, num_heads=3)
    assert from_checkpoint(path, num_heads=3, grid=(2, 6)).input_shape == (None, 16, 48, 3)
    assert from_checkpoint(path, num_heads=3, grid=(2, 6), image_size=48).input_shape == (None, 48, 48, 3)
    as_it_is = from_checkpoint(path, num_heads=3, image_size=(16, 48))
    np.testing.assert_array_equal(weights(as_it_is)["encoder/position_embedding"], arrays["pos_embed"])


@slow_on_jax
@pytest.mark.parametrize("case", [GOOGLE, TIMM, "google_r_ti"])
def test_channels_follow_the_published_rule(case):
    x, _ = io_of(case)
    gray = from_checkpoint(file_of(case), channels=1, **heads_of(case))
    three = original(case)
    one = x[..., :1]
    if case != "google_r_ti":  # whose first kernel is standardized after the sum
        np.testing.assert_allclose(logits(gray, one), logits(three, np.repeat(one, 3, -1)), atol=1e-5)
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
    kernel = weights(original(GOOGLE))["encoder/projection/kernel"].reshape(8, 8, 3, 24)
    expected = keras_vit.utils.resampling.resize_patches(kernel, (4, 4), "jax-linear").reshape(48, 24)
    np.testing.assert_allclose(weights(by_name)["encoder/projection/kernel"], expected, atol=1e-6)
    with pytest.raises(ValueError, match="patches='any'"):
        load_weights(other, path, patches="any")


def test_positions_of_prefix_tokens_are_kept_or_folded():
    x, expected = io_of(TIMM)
    for class_position in (True, False):
        model = from_checkpoint(file_of(TIMM), tokens={"class_position": class_position}, num_heads=3)
        assert np.abs(logits(model, x) - expected).max() <= 1e-4
    x, expected = io_of("timm_deit3")
    model = from_checkpoint(file_of("timm_deit3"), tokens={"class_position": True}, num_heads=3)
    assert np.abs(logits(model, x) - expected).max() <= 1e-4
