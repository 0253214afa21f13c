"""Beside timm and PyTorch's own gradients, where they are installed."""

import importlib.util

import numpy as np
import pytest

from keras_vit import attention_relevance, features, save_checkpoint
from tests.checkpoints.helpers import benchmark, filled

torch = pytest.importorskip("torch", reason="torch is not installed")
if importlib.util.find_spec("timm") is None:
    pytest.skip("timm is not installed", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 32, 48, 3)).astype("float32")
KINDS = {
    "token": {},
    "distilled": dict(tokens={"distilled": True}),
    "gap": dict(pooling="gap", tokens={"class_position": False, "registers": 3}),
    "map": dict(pooling="map", mlp_dim=96),
}


@pytest.fixture(scope="module", params=KINDS)
def pair(request, tmp_path_factory):
    """A model of ours and timm's, with the same weights, and a way from pixels to what timm takes."""
    timm = benchmark("timm_alone").import_timm()
    model = filled(**KINDS[request.param])
    folder = tmp_path_factory.mktemp("timm") / "out"
    save_checkpoint(model, folder, format="timm")
    theirs = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    return model, theirs, torch.tensor((IMAGES / 127.5 - 1).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("norm", [False, True])
def test_features_are_timms_intermediates(pair, norm):
    model, theirs, pixels = pair
    with torch.no_grad():
        expected = theirs.forward_intermediates(pixels, indices=[0, -1], norm=norm, intermediates_only=True)
    found = features(model, [0, -1], norm=norm)(IMAGES)
    for ours, timms in zip(found.values(), expected):
        np.testing.assert_allclose(np.asarray(ours), timms.numpy().transpose(0, 2, 3, 1), atol=1e-4)


def test_relevance_is_that_of_pytorchs_gradients(pair):
    model, theirs, pixels = pair
    if model.get_layer("pool").pooling == "map":
        pytest.skip("the weights of timm's attention pooling are not given out")
    scores = []

    def keep(module, inputs, output):
        output.retain_grad()
        scores.append(output)

    for block in theirs.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_hook(keep)
    logits = theirs(pixels)
    classes = logits.detach().numpy().argmax(-1)
    logits[np.arange(3), classes].sum().backward()
    flow = np.eye(scores[0].shape[-1])
    for score in scores:
        flow = flow + np.maximum((score * score.grad).detach().numpy(), 0).mean(1) @ flow
    prefix = theirs.num_prefix_tokens
    read = slice(prefix, None) if theirs.global_pool == "avg" else slice(0, 2 if hasattr(theirs, "head_dist") else 1)
    expected = (flow - np.eye(flow.shape[-1]))[:, read, prefix:].mean(1).reshape(3, 4, 6)
    np.testing.assert_allclose(attention_relevance(model, IMAGES), expected, rtol=1e-3, atol=1e-5)
