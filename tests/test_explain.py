import keras
import numpy as np
import pytest

from keras_vit import PatchEncoder, Patches, TokenPool, TransformerBlock, attention_maps, attention_rollout, vit

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 12, 8, 3)).astype("uint8")


def tiny(**options):
    return vit("mu/4", image_size=(12, 8), num_classes=5, depth=3, **options)


@pytest.mark.parametrize(
    "options, tokens",
    [
        (dict(), 7),
        (dict(pooling="gap"), 6),
        (dict(distilled=True, registers=2), 10),
        (dict(pooling="map", dtype="mixed_bfloat16"), 6),
    ],
)
def test_shapes_and_row_sums(options, tokens):
    model = tiny(**options)
    before = model.get_config()
    maps = attention_maps(model, IMAGES)
    assert maps.shape == (3, 3, 2, tokens, tokens) and maps.dtype == np.float32
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    assert attention_rollout(model, IMAGES).shape == (3, 3, 2)
    assert model.get_config() == before


def test_maps_are_those_of_the_forward_pass():
    model = tiny()
    block = model.get_layer("block_2")
    tokens = keras.Model(model.input, model.get_layer("block_1").output)(IMAGES)
    qkv = np.asarray(block.attention.qkv(block.norm1(tokens))).reshape(3, 7, 3, 2, 16)
    logits = np.einsum("bthd,bshd->bhts", qkv[:, :, 0], qkv[:, :, 1]) / 4
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(attention_maps(model, IMAGES)[2], expected, atol=1e-5)


def test_rollout_by_hand():
    model = tiny()
    maps = attention_maps(model, IMAGES)
    for i in range(3):
        joint = np.eye(7)
        for layer in range(3):
            joint = (maps[layer, i].mean(0) + np.eye(7)) / 2 @ joint
        np.testing.assert_allclose(attention_rollout(model, IMAGES)[i], joint[0, 1:].reshape(3, 2), atol=1e-5)


def test_rollout_of_a_pooled_model_is_the_mean_over_patches():
    model = tiny(pooling="gap", registers=1)
    maps = attention_maps(model, IMAGES).mean(2)
    joint = np.eye(7)
    for scores in maps[:, 1]:
        joint = (scores + np.eye(7)) / 2 @ joint
    np.testing.assert_allclose(attention_rollout(model, IMAGES)[1], joint[1:, 1:].mean(0).reshape(3, 2), atol=1e-5)


def test_rollout_of_a_distilled_model_reads_both_tokens():
    model = tiny(distilled=True)
    maps = attention_maps(model, IMAGES).mean(2)
    joint = np.eye(8)
    for scores in maps[:, 0]:
        joint = (scores + np.eye(8)) / 2 @ joint
    np.testing.assert_allclose(attention_rollout(model, IMAGES)[0], joint[:2, 2:].mean(0).reshape(3, 2), atol=1e-5)


def hand_made(causal=False, twice=False):
    inputs = keras.Input((12, 8, 3))
    x = PatchEncoder(16)(Patches(4)(inputs))
    block = TransformerBlock(2, 32)
    x = block(x, use_causal_mask=True) if causal else block(x)
    x = block(x) if twice else x
    return keras.Model(inputs, TokenPool("gap", num_prefix=1)(x))


def test_models_of_your_own():
    assert attention_rollout(hand_made(), IMAGES).shape == (3, 3, 2)
    for model in (hand_made(causal=True), hand_made(twice=True)):
        with pytest.raises(ValueError, match="called once, with tokens alone"):
            attention_maps(model, IMAGES)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="multiply by 255"):
        attention_maps(tiny(), IMAGES / 255.0)
    with pytest.raises(ValueError, match=r"shape=\(3, 8, 12, 3\)"):
        attention_maps(tiny(), IMAGES.transpose(0, 2, 1, 3))
    with pytest.raises(ValueError, match="'dense', which has none"):
        attention_maps(keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="dense"), IMAGES)
