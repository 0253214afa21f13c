import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import vit
from keras_vit.training.layer_factors import layer_factors

pytestmark = pytest.mark.backend


def test_the_table_of_layer_decay_is_beits():
    """As MAE's lr_decay.py: `decay ** (depth + 1 - layer)`, patches and positions being 0, blocks 1 to depth."""
    model = vit("B/16", image_size=32, num_classes=2, depth=12, width=12, num_heads=3, mlp_dim=12)
    paths = [v.path for v in model.trainable_variables]
    found = dict(zip(paths, layer_factors(paths, 0.75)))
    assert found["encoder/position_embedding"] == found["encoder/projection/kernel"] == 0.75**13
    for i in range(12):
        assert found[f"block_{i}/attention/qkv/kernel"] == 0.75 ** (12 - i)
    assert found["norm/gamma"] == found["head/kernel"] == 1
    assert layer_factors(["sequential/norm/gamma", "block_0/norm1/gamma", "head/bias"], 0.5) == [
        0.25,
        0.5,
        1,
    ]


def levels(model):
    """How many times the learning rate of each trainable variable is halved."""
    factors = layer_factors([v.path for v in model.trainable_variables], 0.5)
    return [-round(np.log2(factor)) for factor in factors]


def named(network):
    """A stem of another library, whose layers are called as the parts of a ViT are."""
    x = network(filters=4, kernel_size=2, strides=2, name="norm")(images := keras.Input((8, 8, 3)))
    x = network(filters=4, kernel_size=1, name="head")(x)
    inner = keras.Sequential([keras.Input((4, 4, 4)), network(filters=4, kernel_size=1, name="conv")], name="block_7")
    return keras.Model(images, inner(x))


STEMS = {
    "conv": lambda: "conv",
    "resnet": lambda: keras_vit.ResNetStem((1, 1), width=32),
    "model": lambda: named(keras.layers.Conv2D),
    "layer": lambda: keras.layers.Conv2D(4, 2, strides=2),
    "built": lambda: keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 2, strides=2)]),
}


@pytest.mark.parametrize("kind", STEMS)
def test_all_of_a_stem_is_below_the_blocks(kind):
    size = 32 if kind == "resnet" else 8
    more = {"patch_size": 1} if kind != "conv" else {}
    stem = STEMS[kind]()
    model = vit(
        "mu/4",
        image_size=size,
        num_classes=3,
        depth=2,
        stem=stem,
        tokens={"pre_norm": True},
        representation_size=8,
        **more,
    )
    above = {"block_0": 2, "block_1": 1, "norm": 0, "pre_logits": 0, "head": 0}
    expected = [above.get(layer.name, 3) for layer in model.layers for _ in layer.trainable_variables]
    assert levels(model) == expected and expected.count(3) >= 7


def test_a_head_of_your_own_learns_at_the_full_rate():
    inner = vit("mu/4", image_size=8, num_classes=0, depth=2)
    images = keras.Input((8, 8, 3))
    x = keras.layers.Dense(8, name="encoder_of_mine")(inner(keras.layers.Conv2D(3, 1, name="colors")(images)))
    nested = keras.Model(images, keras.layers.Dense(4)(keras.layers.BatchNormalization()(x)))
    longer = keras.Model(inner.input, keras.layers.Dense(4, name="mine")(inner.output))
    for model, count in ((nested, 6), (longer, 2), (keras.Sequential([inner, keras.layers.Dense(4)]), 2)):
        found = dict(zip([v.path for v in model.trainable_variables], levels(model)))
        assert list(found.values())[-count - 2 :] == [0] * (count + 2)  # the norm has two
        assert found["encoder/projection/kernel"] == 3 and found["block_1/mlp/fc1/kernel"] == 1
        assert found.get("colors/kernel", 3) == 3


def test_a_nested_path_and_blocks_of_any_name():
    paths = ["vit_mu/encoder/class_token", "vit_mu/block_0/attention/qkv/kernel", "adapter/kernel",
             "vit_mu/block_1/attention/qkv/kernel", "vit_mu/block_1/mlp/fc1/kernel", "dense/kernel"]  # fmt: skip
    assert layer_factors(paths, 0.5) == [0.125, 0.25, 0.25, 0.5, 0.5, 1]
    paths = [path.replace("block_0", "transformer_block").replace("block_1", "transformer_block_1") for path in paths]
    assert layer_factors(paths, 0.5) == [0.125, 0.25, 0.25, 0.5, 0.5, 1]
    assert layer_factors(["dense/kernel", "head/kernel"], 0.5) == [1, 1]  # a probe
    paths = ["block_0/attention/qkv/kernel", "head/classes", "head/decoder_0/attention/qkv/kernel", "head/norm/gamma"]
    assert layer_factors(paths, 0.5) == [0.5, 1, 1, 1]  # a head with blocks of its own
    encoder, decoder = [[f"{prefix}block_{i}/attention/qkv/kernel" for i in (0, 1)] for prefix in ("", "decoder/")]
    assert layer_factors([*encoder, "norm/gamma", *decoder], 0.5) == [0.25, 0.5, 1, 1, 1]  # a learner with a decoder
    upper = ["block_2/attention/qkv/kernel", "block_3/attention/qkv/kernel", "mine/kernel"]  # the lower ones are frozen
    assert layer_factors(upper, 0.5) == [0.25, 0.5, 1]
