"""ViLT beside live models of transformers, where it is installed, at published widths and with other flags."""

import importlib.util

import keras
import numpy as np
import pytest

from keras_vit import from_checkpoint, from_pretrained
from tests.checkpoints.helpers import benchmark

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

IDS = np.random.default_rng(0).integers(1, 100, size=(2, 40)).astype("int32")
IDS[1, 9:] = 0


@pytest.fixture(scope="module", autouse=True)
def importable():
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()  # makes torchvision importable


def saved(kind, folder, **options):
    """Returns a model with random numbers for weights, whose files are in the folder."""
    sizes = dict(hidden_size=768, num_attention_heads=12, intermediate_size=3072, num_hidden_layers=2, vocab_size=100)
    config = transformers.ViltConfig(**{**sizes, "num_labels": 9, **options})
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    return model.eval()


def difference(theirs, model, size):
    """Returns the largest difference for pictures of a size, in files' corner among zeros that are masked."""
    rows, columns = size
    images = np.random.default_rng(1).uniform(-1, 1, size=(2, rows, columns, 3)).astype("float32")
    padded = np.pad(images, ((0, 0), (0, 32), (0, 64), (0, 0)))
    mask = np.pad(np.ones((2, rows, columns), "int64"), ((0, 0), (0, 32), (0, 64)))
    with torch.no_grad():
        out = theirs(
            input_ids=torch.tensor(IDS.astype("int64")),
            attention_mask=torch.tensor((IDS != 0).astype("int64")),
            pixel_values=torch.tensor(padded.transpose(0, 3, 1, 2)),
            pixel_mask=torch.tensor(mask),
        )
    expected = (out.logits if hasattr(out, "logits") else out.pooler_output).numpy()
    found = model({"images": (images + 1) * 127.5, "texts": IDS}, training=False)
    return np.abs(keras.ops.convert_to_numpy(found) - expected).max()


@pytest.mark.parametrize(
    "kind, size, options",
    [
        ("ViltForQuestionAnswering", (384, 384), {}),  # the published sizes, but for depth and words
        ("ViltForQuestionAnswering", (96, 224), dict(layer_norm_eps=1e-5, hidden_act="gelu_new")),
        ("ViltForQuestionAnswering", (32, 64), dict(hidden_size=192, num_attention_heads=3, intermediate_size=500)),
        ("ViltForQuestionAnswering", (64, 32), dict(qkv_bias=False, type_vocab_size=3, num_labels=2, image_size=64)),
        ("ViltForQuestionAnswering", (64, 96), dict(patch_size=16, image_size=96, modality_type_vocab_size=3)),
        ("ViltForImageAndTextRetrieval", (96, 64), dict(hidden_size=1024, num_attention_heads=16)),
        ("ViltModel", (64, 96), dict(num_attention_heads=6, image_size=160)),
    ],
)
def test_any_rectangle(kind, size, options, tmp_path):
    theirs = saved(kind, tmp_path, **options)
    model = from_checkpoint(tmp_path, image_size=size)
    assert difference(theirs, model, size) < 1e-4
    folded = sum(v.numel() for k, v in theirs.named_parameters() if "token_type" in k)
    ours = sum(np.prod(v.shape) for v in model.weights if "position" not in v.path)
    assert ours + folded == sum(v.numel() for k, v in theirs.named_parameters() if "position" not in k)


def test_heads_for_other_tasks_are_refused(tmp_path):
    for kind, options in (
        ("ViltForMaskedLM", {}),
        ("ViltForImagesAndTextClassification", dict(num_images=2, modality_type_vocab_size=3)),
        ("ViltForTokenClassification", {}),
    ):
        theirs = saved(kind, tmp_path / kind, **options)
        with pytest.raises(
            ValueError, match="has a head that answers no questions, and cannot be loaded: .*head='new'"
        ):
            from_pretrained(tmp_path / kind)
        if kind != "ViltForTokenClassification":  # which has no pooler
            base = from_checkpoint(tmp_path / kind, num_classes=0, image_size=(64, 96))
            assert difference(theirs.vilt, base, (64, 96)) < 1e-4
        assert from_checkpoint(tmp_path / kind, num_classes=3, head="new").output_shape == (None, 3)
