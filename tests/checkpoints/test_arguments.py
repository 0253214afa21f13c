import numpy as np
import pytest

from keras_vit import vit
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.tables import grid
from keras_vit.layers.heads.token_pool import POOL
from keras_vit.models.options import merged

pytestmark = pytest.mark.backend

ODD = dict(
    image_size=(12, 8), channels=1, mean=0.1, std=0.2, value_range=[0, 255], stem=None, patch_size=(4, 2), width=16,
    depth=3, num_heads=4, mlp_dim=20,
    tokens={"class_token": True, "distilled": True, "registers": 2, "class_position": False, "block_positions": False,
            "patch_norm": False, "pre_norm": True, "windows": 1, "whole_blocks": ()},
    position="learned", rotary=None, norm={"rms_norm": False, "epsilon": 1e-3},
    block={"norm_order": "pre", "parallel": False, "qkv_bias": False, "key_bias": True, "proj_bias": True,
           "qk_norm": True, "gelu": "quick", "swiglu": True, "sub_norm": None, "layer_scale": 0.1},
    pooling="token", pool=dict(POOL), final_norm="before", representation_size=8, num_classes=5,
)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {},
        dict(block={"qkv_bias": True, "key_bias": False}, rotary={"base": 7.0, "offset": 2.0, "centered": False}),
        dict(position="relative", block={"sub_norm": "both"}),
        dict(block={"norm_order": "res-post", "sub_norm": "mlp"}),
        dict(block={"norm_order": "post"}),
        dict(block={"parallel": True}),
        dict(tokens={"windows": 2, "whole_blocks": (0, 2)}, image_size=(16, 8)),
        dict(norm={"rms_norm": True}, tokens={"patch_norm": True, "block_positions": True}, block={"proj_bias": False}),
        dict(rotary="rope-vit", tokens={"distilled": False}, pooling="map", pool={"num_heads": 2, "over_prefix": True}),
        dict(
            tokens={"distilled": False, "class_token": False},
            pooling="gap",
            final_norm="after",
            position="sincos2d",
            num_classes=0,
        ),
    ],
)
def test_arguments_go_in_and_come_out(change):
    given = merged(ODD, change)
    model = vit(None, **given)
    assert arguments_of(model) == given and grid(arguments_of(model)) == (given["image_size"][0] // 4, 4)
    again = vit(None, **arguments_of(model))
    assert [(v.path, tuple(v.shape)) for v in again.weights] == [(v.path, tuple(v.shape)) for v in model.weights]


def test_the_stem_is_the_layer():
    model = vit("mu/4", image_size=8, stem="conv")
    assert arguments_of(model)["stem"] is model.get_layer("stem")


def test_other_models_are_named():
    with pytest.raises(ValueError, match=r"Received: an array.*rescale, patches, encoder, block_0"):
        arguments_of(np.zeros(2))
