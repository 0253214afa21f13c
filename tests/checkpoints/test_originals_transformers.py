"""Beside live models of transformers, where it is installed: reading theirs, and they reading ours."""

import contextlib
import importlib.util

import keras
import numpy as np
import pytest

import keras_vit
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
        dict(norm={"epsilon": 1e-12}),
        dict(norm={"epsilon": 1e-12}, tokens={"distilled": True}),
        dict(norm={"epsilon": 1e-5}, tokens={"registers": 1}, block={"gelu": "tanh"}),
        dict(norm={"epsilon": 1e-12}, tokens={"class_position": False}, block={"qkv_bias": False}),
    ],
)
def test_transformers_loads_what_we_write(options, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    model = filled(**options)
    save_checkpoint(model, tmp_path / "out", format="huggingface")
    theirs, report = transformers.AutoModelForImageClassification.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    if options.get("tokens", {}).get("distilled"):
        theirs, report = transformers.DeiTForImageClassificationWithTeacher.from_pretrained(
            tmp_path / "out", output_loading_info=True
        )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad():
        expected = theirs(CHANNELS_FIRST).logits.numpy()
    np.testing.assert_allclose(logits(model, IMAGES), expected, atol=1e-4)
    theirs.save_pretrained(tmp_path / "back")
    again = from_checkpoint(tmp_path / "back")
    assert keras.ops.shape(again.get_layer("head").kernel) == (24, 7)
    np.testing.assert_allclose(logits(again, IMAGES), expected, atol=1e-4)


def test_transformers_loads_a_headless_model(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    model = filled(num_classes=0, norm={"epsilon": 1e-12})
    save_checkpoint(model, tmp_path / "out", format="huggingface")
    theirs = transformers.ViTModel.from_pretrained(tmp_path / "out")
    with torch.no_grad():
        expected = theirs(CHANNELS_FIRST).last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(logits(model, IMAGES), expected, atol=1e-4)


SIZES = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=3, image_size=32, patch_size=8)
RELATIVE = dict(intermediate_size=80, use_relative_position_bias=True)
ANY_SIZE = {"interpolate_pos_encoding": True}


@pytest.mark.parametrize(
    "kind, options, call",
    [
        ("Dinov2Model", dict(mlp_ratio=2), {}),
        ("Dinov2Model", dict(use_swiglu_ffn=True), {}),
        ("Dinov2ForImageClassification", dict(num_labels=7), {}),
        ("Dinov2WithRegistersForImageClassification", dict(num_labels=7, num_register_tokens=3), {}),
        ("DINOv3ViTModel", dict(num_register_tokens=2, intermediate_size=80), {}),
        ("DINOv3ViTModel", dict(num_register_tokens=2, use_gated_mlp=True, hidden_act="silu"), {}),
        ("IJepaForImageClassification", dict(num_labels=7, intermediate_size=80), ANY_SIZE),
        ("BeitModel", RELATIVE, {}),
        ("BeitModel", {**RELATIVE, "use_mean_pooling": False}, {}),
        ("BeitForImageClassification", {**RELATIVE, "num_labels": 7}, {}),
        ("CLIPVisionModel", dict(intermediate_size=80), ANY_SIZE),
        ("CLIPVisionModel", dict(intermediate_size=80, hidden_act="gelu"), ANY_SIZE),
        ("CLIPVisionModelWithProjection", dict(intermediate_size=80, projection_dim=9), ANY_SIZE),
        ("SiglipVisionModel", dict(intermediate_size=80), ANY_SIZE),
    ],
)
def test_image_towers_of_transformers(kind, options, call, tmp_path):
    """Read theirs, at three sizes; write it again, and they read ours."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()  # makes torchvision importable
    owner = kind.split("For")[0].removesuffix("WithProjection").removesuffix("Model")
    theirs = getattr(transformers, kind)(getattr(transformers, f"{owner}Config")(**SIZES, **options)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    theirs.save_pretrained(tmp_path / "theirs")
    for size in ((32, 32), (48, 48), (32, 56)):
        x = np.random.default_rng(0).normal(size=(2, *size, 3)).astype("float32")
        expected = _output(theirs, x, call)
        model = from_checkpoint(tmp_path / "theirs", image_size=size)
        np.testing.assert_allclose(logits(model, x), expected, atol=1e-4)
    if not kind.startswith(("IJepa", "Beit")):
        model = from_checkpoint(tmp_path / "theirs")
        save_checkpoint(model, tmp_path / "ours", format="huggingface")
        again = getattr(transformers, kind).from_pretrained(tmp_path / "ours").eval()
        x = np.random.default_rng(1).normal(size=(2, 32, 32, 3)).astype("float32")
        np.testing.assert_allclose(_output(again, x, call), logits(model, x), atol=1e-4)


@pytest.mark.parametrize("kind", ["Siglip2VisionModel", "Siglip2ForImageClassification"])
def test_siglip_2_of_any_aspect_at_one_size(kind, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()
    sizes = {**SIZES, "num_patches": 16, "intermediate_size": 80}
    config = transformers.Siglip2VisionConfig(**sizes)
    if kind.endswith("Classification"):
        config = transformers.Siglip2Config(vision_config=config.to_dict(), num_labels=7)
    theirs = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    theirs.save_pretrained(tmp_path)
    for size in ((32, 32), (48, 48), (32, 56)):
        x = np.random.default_rng(0).normal(size=(2, *size, 3)).astype("float32")
        rows, columns = (side // 8 for side in size)
        patches = x.reshape(2, rows, 8, columns, 8, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, rows * columns, -1)
        mask = torch.ones(2, rows * columns, dtype=torch.int32)
        call = {"pixel_attention_mask": mask, "spatial_shapes": torch.tensor([[rows, columns]] * 2)}
        with torch.no_grad():
            found = theirs(torch.tensor(patches), **call)
        expected = found["logits" if "logits" in found else "pooler_output"].numpy()
        np.testing.assert_allclose(logits(from_checkpoint(tmp_path, image_size=size), x), expected, atol=1e-4)


def test_timm_s_models_as_transformers_saves_them(timm, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.TimmWrapperConfig(architecture="vit_tiny_patch16_224", model_args={"depth": 2}, num_labels=7)
    theirs = transformers.TimmWrapperForImageClassification(config).eval()
    theirs.save_pretrained(tmp_path)
    x = np.random.default_rng(0).normal(size=(2, 224, 224, 3)).astype("float32")
    np.testing.assert_allclose(logits(from_checkpoint(tmp_path), x), _output(theirs, x, {}), atol=1e-4)


@pytest.mark.parametrize("kind", ["Aimv2VisionModel", "Aimv2Model"])
def test_aimv2_of_transformers(kind, tmp_path):
    """Its encoder: the mean of what it gives for each patch."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.Aimv2VisionConfig(**SIZES, intermediate_size=80, use_head=kind == "Aimv2Model")
    if kind == "Aimv2Model":
        text = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=9)
        config = transformers.Aimv2Config(vision_config=config.to_dict(), text_config=text, projection_dim=8)
    theirs = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    theirs.save_pretrained(tmp_path)
    x = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype("float32")
    with torch.no_grad():
        tower = theirs if kind == "Aimv2VisionModel" else theirs.vision_model
        expected = tower(torch.tensor(x.transpose(0, 3, 1, 2))).last_hidden_state.mean(1).numpy()
    with contextlib.ExitStack() as stack:
        if kind == "Aimv2Model":
            stack.enter_context(pytest.warns(UserWarning, match="pooling='gap' .*attention pooling, whose query"))
        np.testing.assert_allclose(logits(from_checkpoint(tmp_path), x), expected, atol=1e-4)
        assert from_checkpoint(tmp_path, image_size=(32, 56)).output_shape == (None, 48)


def _output(model, x, call):
    with torch.no_grad():
        found = model(torch.tensor(x.transpose(0, 3, 1, 2)), **call)
    return next(found[name] for name in ("logits", "image_embeds", "pooler_output") if name in found).numpy()


@pytest.mark.parametrize("middle", [True, False])
@pytest.mark.parametrize("size", [(32, 48), (56, 40)])
def test_yolos_of_transformers(middle, size, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    more = dict(intermediate_size=80, num_detection_tokens=9, num_labels=4, use_mid_position_embeddings=middle)
    config = transformers.YolosConfig(**{**SIZES, "image_size": [32, 48], "num_hidden_layers": 3, **more})
    theirs = transformers.YolosForObjectDetection(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    theirs.save_pretrained(tmp_path)
    images = np.random.default_rng(0).normal(size=(2, *size, 3)).astype("float32")
    with torch.no_grad():
        expected = theirs(torch.tensor(images.transpose(0, 3, 1, 2)))
    task, model = keras_vit.Detect.from_checkpoint(tmp_path, image_size=size)
    learner = task.learner(model)
    found = np.asarray(keras.Model(model.get_layer("rescale").output, learner.output)(images))[:, 0]
    np.testing.assert_allclose(found[..., 4:], expected.logits.numpy(), atol=1e-4)
    boxes = expected.pred_boxes.numpy()
    np.testing.assert_allclose((found[..., :2] + found[..., 2:4]) / 2, boxes[..., 1::-1], atol=1e-4)
    np.testing.assert_allclose(found[..., 2:4] - found[..., :2], boxes[..., 3:1:-1], atol=1e-4)
