"""torchvision's names: the golden model of timm under them gives the same logits."""

import re

import numpy as np
import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints.tables import IMAGENET
from tests.checkpoints.helpers import arrays_of, assert_same_weights, original, weights, write

pytestmark = pytest.mark.backend

NAMES = [
    (r"^patch_embed\.proj\.", "conv_proj."),
    (r"^cls_token$", "class_token"),
    (r"^pos_embed$", "encoder.pos_embedding"),
    (r"^blocks\.(\d+)\.norm([12])\.", r"encoder.layers.encoder_layer_\1.ln_\2."),
    (r"^blocks\.(\d+)\.attn\.qkv\.", r"encoder.layers.encoder_layer_\1.self_attention.in_proj_"),
    (r"^blocks\.(\d+)\.attn\.proj\.", r"encoder.layers.encoder_layer_\1.self_attention.out_proj."),
    (r"^blocks\.(\d+)\.mlp\.fc1\.", r"encoder.layers.encoder_layer_\1.mlp.0."),
    (r"^blocks\.(\d+)\.mlp\.fc2\.", r"encoder.layers.encoder_layer_\1.mlp.3."),
    (r"^norm\.", "encoder.ln."),
]


def under(names, arrays):
    for pattern, name in names:
        arrays = {re.sub(pattern, name, key): array for key, array in arrays.items()}
    return arrays


@pytest.mark.parametrize("head", ["heads.head.", "heads.", "heads.0."])
def test_its_files_are_read(head, tmp_path):
    arrays = under([*NAMES, (r"^head\.", head)], arrays_of("timm_vit"))
    assert not any(name.startswith(("blocks", "head.")) for name in arrays)
    model = from_checkpoint(write(tmp_path / "vit_b_16.safetensors", arrays), num_heads=3)
    assert_same_weights(weights(model), weights(original("timm_vit")))
    rescale, encoder = model.get_layer("rescale"), model.get_layer("encoder")
    assert (rescale.mean, rescale.std) == (IMAGENET["mean"], IMAGENET["std"])
    assert rescale.metadata["evaluation"]["interpolation"] == "bicubic"  # not of 224 pixels
    larger = from_checkpoint(tmp_path / "vit_b_16.safetensors", num_heads=3, image_size=40)
    corners = [0, 4, 20, 24] if encoder.class_position is False else [1, 5, 21, 25]
    table, wide = (np.asarray(m.get_layer("encoder").position_embedding)[0] for m in (model, larger))
    prefix = corners[0]
    np.testing.assert_allclose(wide[corners], table[[prefix, prefix + 2, prefix + 6, prefix + 8]], atol=1e-6)
