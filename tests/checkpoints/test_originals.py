"""Beside live models of timm, where it is installed: reading theirs, and they reading ours."""

import importlib.util
import json
import re
import sys

import numpy as np
import pytest

from keras_vit import from_checkpoint, save_checkpoint
from tests.checkpoints.helpers import benchmark, filled, logits

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

IMAGES = np.random.default_rng(0).normal(size=(2, 32, 48, 3)).astype("float32")
CHANNELS_FIRST = torch.tensor(IMAGES.transpose(0, 3, 1, 2))


@pytest.fixture(scope="module")
def timm():
    if importlib.util.find_spec("timm") is None:
        pytest.skip("timm is not installed")
    return benchmark("timm_alone").import_timm()


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(tokens={"distilled": True}),
        dict(
            pooling="gap", final_norm="after", tokens={"class_token": True, "registers": 2}, block={"layer_scale": 0.1}
        ),
        dict(pooling="gap", tokens={"class_position": False, "registers": 3}),
        dict(pooling="map", block={"qk_norm": True}, mlp_dim=96),
        dict(block={"qkv_bias": False, "gelu": "tanh"}, tokens={"class_position": False}),
        dict(block={"swiglu": True}, num_classes=0),
        dict(position="sincos2d"),
        dict(position=None),
        dict(tokens={"pre_norm": True}, norm={"epsilon": 1e-5}, block={"qkv_bias": False}),
        dict(patch_size=(8, 16)),
    ],
)
def test_timm_loads_what_we_write(timm, options, tmp_path):
    model = filled(**options)
    save_checkpoint(model, tmp_path / "out", format="timm")
    theirs = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True).eval()
    with torch.no_grad():
        expected = theirs(CHANNELS_FIRST).numpy()
    np.testing.assert_allclose(logits(model, IMAGES), expected, atol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "vit_small_patch16_dinov3_qkvb",
        "vit_small_plus_patch16_dinov3",
        "vit_small_patch16_lingbot",
        "vit_small_patch16_rope_224",
        "vit_small_patch16_rope_ape_224",
        "vit_medium_patch16_rope_reg1_gap_256",
        "vit_pe_core_tiny_patch16_384",
        "vit_pe_spatial_tiny_patch16_512",
        "eva_giant_patch14_224",
        "eva02_tiny_patch14_224",
        "eva02_base_patch14_224",
        "eva02_base_patch16_clip_224",
        "eva02_enormous_patch14_clip_224",
        "aimv2_large_patch14_224",
        "aimv2_huge_patch14_336",
        "beit3_base_patch16_224",
        "vit_base_patch16_rpn_224",
        "vit_pwee_patch16_reg1_gap_256",
        "vit_base_patch16_xp_224",
        "vit_small_patch16_rope_mixed_224",
        "vit_small_patch16_rope_mixed_ape_224",
        "beit_base_patch16_224",
        "beitv2_base_patch16_224",
    ],
)
def test_timm_s_models_with_positions_of_their_own(timm, name, tmp_path):
    """At real widths and two sizes, all parameters random."""
    import safetensors.torch

    generator = torch.Generator().manual_seed(0)
    theirs = timm.create_model(name, depth=2, num_classes=7).eval()
    with torch.no_grad():
        for key, parameter in theirs.named_parameters():
            near_one = parameter.ndim == 1 and re.search(r"norm.*weight|gamma", key)
            parameter.copy_(bool(near_one) + 0.03 * torch.randn(parameter.shape, generator=generator))
    state = {key: tensor.contiguous() for key, tensor in theirs.state_dict().items()}
    safetensors.torch.save_file(state, tmp_path / "model.safetensors")
    size = [3, *theirs.patch_embed.img_size]
    config = {"architecture": name, "global_pool": theirs.global_pool, "pretrained_cfg": {"input_size": size}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    side = 14 if "patch14" in name else 16
    for size in ((4 * side, 4 * side), (4 * side, 7 * side)):
        resized = timm.create_model(name, depth=2, num_classes=7, img_size=size).eval()
        resized.load_state_dict(
            sys.modules[type(theirs).__module__].checkpoint_filter_fn(dict(theirs.state_dict()), resized)
        )
        x = np.random.default_rng(0).normal(size=(2, *size, 3)).astype("float32")
        with torch.no_grad():
            expected = resized(torch.tensor(x.transpose(0, 3, 1, 2))).numpy()
        np.testing.assert_allclose(logits(from_checkpoint(tmp_path, image_size=size), x), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["naflexvit_base_patch16_gap", "naflexvit_base_patch16_siglip"])
def test_timm_s_naflex_at_one_size(timm, name, tmp_path):
    import safetensors.torch

    theirs = timm.create_model(name, depth=2, num_classes=7).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.03 * torch.randn(parameter.shape))
    state = {key: tensor.contiguous() for key, tensor in theirs.state_dict().items()}
    safetensors.torch.save_file(state, tmp_path / "model.safetensors")
    config = {"architecture": name, "global_pool": theirs.global_pool}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for size in ((256, 256), (64, 112)):
        x = np.random.default_rng(0).normal(size=(2, *size, 3)).astype("float32")
        with torch.no_grad():
            expected = theirs(torch.tensor(x.transpose(0, 3, 1, 2))).numpy()
        np.testing.assert_allclose(logits(from_checkpoint(tmp_path, image_size=size), x), expected, atol=1e-4)


@pytest.mark.parametrize("variant", ["R+Ti/16", "R26+S/32", "R50+B/16"])
def test_timm_loads_hybrids(timm, variant, tmp_path):
    model = from_checkpoint_of_timm(timm, variant, tmp_path)
    save_checkpoint(model, tmp_path / "out", format="timm")
    theirs = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True).eval()
    x = np.random.default_rng(0).normal(size=(1, 64, 64, 3)).astype("float32")
    with torch.no_grad():
        expected = theirs(torch.tensor(x.transpose(0, 3, 1, 2))).numpy()
    np.testing.assert_allclose(logits(model, x), expected, atol=1e-4)


def from_checkpoint_of_timm(timm, variant, folder):
    import safetensors.torch

    name = {"R+Ti/16": "vit_tiny_r_s16_p8_224", "R26+S/32": "vit_small_r26_s32_224", "R50+B/16": "vit_base_r50_s16_224"}
    model = timm.create_model(name[variant], img_size=64, depth=1, num_classes=5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    path = folder / "theirs.safetensors"
    safetensors.torch.save_file(model.state_dict(), path)
    return from_checkpoint(path)


def test_kernels_are_resized_as_timm_does(timm):
    from timm.layers.patch_embed import resample_patch_embed

    from keras_vit.utils.resampling import resize_patches

    kernel = np.random.default_rng(0).normal(size=(16, 16, 3, 8)).astype("float32")
    for size in ((8, 8), (24, 20)):
        theirs = resample_patch_embed(torch.tensor(kernel.transpose(3, 2, 0, 1)), list(size)).numpy()
        ours = resize_patches(kernel, size, "bicubic-antialias")
        np.testing.assert_allclose(ours, theirs.transpose(2, 3, 1, 0), atol=1e-3)
