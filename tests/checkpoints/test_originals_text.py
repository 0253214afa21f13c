"""Text towers and pairs of towers beside live models of transformers, where it is installed, at published widths."""

import importlib.util
import json

import numpy as np
import pytest

from keras_vit import from_checkpoint
from tests.checkpoints.helpers import benchmark
from tests.checkpoints.towers import answers

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

IMAGES = np.random.default_rng(0).uniform(-1, 1, size=(3, 32, 32, 3)).astype("float32")
IDS = np.random.default_rng(0).integers(3, 99, size=(4, 12)).astype("int32")
IDS[:, 7] = 99
VISION = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3, image_size=32,
              patch_size=8)  # fmt: skip


def text(width, heads, **options):
    sizes = dict(hidden_size=width, num_attention_heads=heads, num_hidden_layers=2, vocab_size=100)
    return {**sizes, "intermediate_size": 4 * width, "max_position_embeddings": 12, **options}


@pytest.fixture(scope="module", autouse=True)
def importable():
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()  # makes torchvision importable


def saved(model, folder):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize(
    "family, config",
    [
        ("CLIP", text(512, 8, hidden_act="quick_gelu", eos_token_id=2)),
        ("CLIP", text(768, 12, hidden_act="quick_gelu", eos_token_id=99)),
        ("CLIP", text(1024, 16, hidden_act="gelu", eos_token_id=99)),
        ("CLIP", text(1280, 20, hidden_act="gelu", eos_token_id=2, layer_norm_eps=1e-4)),
        ("MetaClip2", text(512, 8, eos_token_id=50)),
        ("Siglip", text(768, 12)),
        ("Siglip", text(1152, 16, intermediate_size=4304, projection_size=48)),
    ],
)
def test_both_towers(family, config, tmp_path):
    ids, width = IDS.copy(), config.get("projection_size", config["hidden_size"])
    vision = VISION | ({} if family != "Siglip" or width == 48 else {"hidden_size": width, "num_attention_heads": 12})
    if family == "MetaClip2":
        ids[:, 4] = ids[:, 9] = 50  # the first is the end
    more = {} if family == "Siglip" else {"projection_dim": 40}
    whole = getattr(transformers, f"{family}Config")(text_config=config, vision_config=vision, **more)
    theirs = saved(getattr(transformers, f"{family}Model")(whole), tmp_path)
    with torch.no_grad():
        pixels = torch.tensor(IMAGES.transpose(0, 3, 1, 2))
        expected = theirs(input_ids=torch.tensor(ids), pixel_values=pixels)
    found = answers(from_checkpoint(tmp_path, part="both"), {"images_nhwc": IMAGES, "tokens": ids})
    np.testing.assert_allclose(found["text_features"], expected.text_embeds.numpy(), atol=1e-4)
    np.testing.assert_allclose(found["image_features"], expected.image_embeds.numpy(), atol=1e-4)
    np.testing.assert_allclose(found["logits_per_image"], expected.logits_per_image.numpy(), atol=1e-4)


@pytest.mark.parametrize(
    "kind, config",
    [
        ("CLIPTextModel", text(768, 12, hidden_act="quick_gelu", eos_token_id=2)),
        ("CLIPTextModelWithProjection", text(1280, 20, hidden_act="gelu", eos_token_id=99, projection_dim=40)),
        ("MetaClip2TextModel", text(512, 8, eos_token_id=99)),
        ("SiglipTextModel", text(768, 12)),
        ("Siglip2TextModel", text(1152, 16, projection_size=40)),
    ],
)
def test_text_towers_alone(kind, config, tmp_path):
    owner = kind.partition("Model")[0]
    theirs = saved(getattr(transformers, kind)(getattr(transformers, f"{owner}Config")(**config)), tmp_path)
    with torch.no_grad():
        found = theirs(input_ids=torch.tensor(IDS))
    expected = found["text_embeds" if "text_embeds" in found else "pooler_output"].numpy()
    np.testing.assert_allclose(from_checkpoint(tmp_path, part="text")(IDS), expected, atol=1e-4)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").unlink()  # a bare file has the heads of published towers
    stated = (
        {} if "Siglip" in kind else {"pooling": "end", "end": 99, "gelu": "exact" if "1280" in str(config) else "quick"}
    )
    np.testing.assert_allclose(from_checkpoint(tmp_path, part="text", **stated)(IDS), expected, atol=1e-4)
