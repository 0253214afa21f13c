import numpy as np
import pytest

from keras_vit import vit
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.tables import grid

pytestmark = pytest.mark.backend

ODD = dict(
    image_size=(12, 8), channels=1, num_classes=5, pooling="token", attention_pool=None, class_token=True,
    distilled=True, registers=2, position="learned", class_position=False, rotary=None, representation_size=8,
    layer_scale=0.1, qkv_bias=False, key_bias=True, qk_norm=True, gelu="quick", swiglu=True, epsilon=1e-3,
    pre_norm=True, final_norm="before", mean=0.1, std=0.2, value_range=[0, 255], stem=None, width=16,
    depth=3, mlp_dim=20, num_heads=4,
    patch_size=(4, 2), sub_norm=None, branch_norm=False, rms_norm=False, patch_norm=False,
    proj_bias=True, block_positions=False,
)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {},
        dict(qkv_bias=True, key_bias=False, rotary={"base": 7.0, "offset": 2.0, "centred": False}),
        dict(position="relative", sub_norm="both"),
        dict(branch_norm=True, sub_norm="mlp"),
        dict(rms_norm=True, patch_norm=True, proj_bias=False, block_positions=True),
        dict(rotary="rope-vit", distilled=False, pooling="map", attention_pool={"num_heads": 2, "over_prefix": True}),
        dict(distilled=False, pooling="gap", class_token=False, final_norm="after", position="sincos2d", num_classes=0),
    ],
)
def test_arguments_go_in_and_come_out(change):
    given = {**ODD, **change}
    model = vit(None, **given)
    assert arguments_of(model) == given and grid(arguments_of(model)) == (3, 4)
    again = vit(None, **arguments_of(model))
    assert [(v.path, tuple(v.shape)) for v in again.weights] == [(v.path, tuple(v.shape)) for v in model.weights]


def test_the_stem_is_the_layer():
    model = vit("mu/4", image_size=8, stem="conv")
    assert arguments_of(model)["stem"] is model.get_layer("stem")


def test_other_models_are_named():
    with pytest.raises(ValueError, match=r"Received: array.*rescale, patches, encoder, block_0"):
        arguments_of(np.zeros(2))
