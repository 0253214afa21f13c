"""Depth Anything, DPT and ViTPose beside live models of transformers, where it is installed, at published widths."""

import functools
import importlib.util

import keras
import numpy as np
import pytest

from keras_vit import from_checkpoint, load_weights
from keras_vit.preparing.evaluation_rule import keeping_aspect
from tests.checkpoints.helpers import benchmark
from tests.marks import few

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@functools.cache
def models():
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()  # makes torchvision importable
    return benchmark("depth_models")


def both(theirs, model, size):
    """Returns what both make of images that are normalized already, and how far apart their numbers may be."""
    images = np.random.default_rng(1).normal(size=(2, *size, 3)).astype("float32")
    wanted = models().answers(theirs, images)
    body = keras.Model(model.get_layer("rescale").output, model.output)
    found = keras.ops.convert_to_numpy(body(images))
    found = found[..., 0] if wanted.ndim == 3 else found
    assert found.shape == wanted.shape and np.ptp(wanted) > 1e-3
    return found, wanted, 1e-4 * np.ptp(wanted)


def compare(theirs, folder, size):
    found, wanted, close = both(theirs, from_checkpoint(folder, image_size=size), size)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=close)


@few(3)
@pytest.mark.parametrize(
    "size, options",
    [
        ((70, 70), {}),
        ((98, 42), dict(size="base")),
        ((56, 126), dict(size="large", depth_estimation_type="metric", max_depth=80)),
        ((42, 84), dict(head_hidden_size=16, max_depth=3, backbone=dict(apply_layernorm=False, use_swiglu_ffn=True))),
        ((84, 56), dict(backbone=dict(layer_norm_eps=1e-4, hidden_act="gelu_new", qkv_bias=False))),
        ((42, 70), dict(reassemble_factors=(4, 1), patch_size=14)),
    ],
)
def test_depth_anything(size, options, tmp_path):
    compare(models().depth_anything(tmp_path, **options), tmp_path, size)


@few(2)
@pytest.mark.parametrize(
    "size, options",
    [
        ((96, 96), {}),
        ((64, 64), dict(readout_type="add")),
        ((96, 96), dict(readout_type="ignore", qkv_bias=False)),
        ((112, 112), dict(hidden_act="gelu_new", layer_norm_eps=1e-5)),  # an odd grid: 7 x 7
        ((80, 80), dict(use_batch_norm_in_fusion_residual=True, hidden_size=768, num_attention_heads=12)),
    ],
)
def test_dpt(size, options, tmp_path):
    compare(models().dpt(tmp_path, **options), tmp_path, size)


@few(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(backbone=dict(hidden_size=768)),
        dict(use_simple_decoder=False),
        dict(scale_factor=2, backbone=dict(image_size=(128, 96), layer_norm_eps=1e-5, qkv_bias=False)),
    ],
)
def test_vitpose(options, tmp_path):
    theirs = models().vitpose(tmp_path, **options)
    size = tuple(theirs.config.backbone_config.image_size)
    compare(theirs, tmp_path, size)
    assert from_checkpoint(tmp_path).input_shape == (None, *size, 3)


def test_a_model_takes_only_the_weights_of_its_head(tmp_path):
    theirs = models().depth_anything(tmp_path / "metric", depth_estimation_type="metric", max_depth=20)
    models().depth_anything(tmp_path / "relative")
    model = from_checkpoint(tmp_path / "relative", image_size=(42, 70))
    with pytest.raises(ValueError, match="has the head's .*'sigmoid'.*, and the model .*'relu'"):
        load_weights(model, tmp_path / "metric")
    model = load_weights(from_checkpoint(tmp_path / "metric", image_size=(42, 70)), tmp_path / "metric")
    found, wanted, close = both(theirs, model, (42, 70))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=close)


def test_sizes_that_keep_the_aspect_are_the_processor_s():
    models()
    from transformers.models.dpt.image_processing_pil_dpt import get_resize_output_image_size

    rng = np.random.default_rng(0)
    for shape in rng.integers(60, 900, (40, 2)).tolist():
        for size, multiple in (((518, 518), 14), ((384, 512), 32)):
            theirs = get_resize_output_image_size(np.zeros((3, *shape)), size, True, multiple)
            assert keeping_aspect(shape, size, multiple) == (theirs.height, theirs.width), shape


def test_experts_are_refused(tmp_path):
    models().vitpose(tmp_path, backbone=dict(num_experts=2, part_features=64))
    with pytest.raises(ValueError, match="ViTPose. has experts"):
        from_checkpoint(tmp_path)
