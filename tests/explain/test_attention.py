import keras
import numpy as np
import pytest

from keras_vit import attention_maps, attention_rollout
from keras_vit.explain import attention_distance, attention_from
from tests.explain.models import IMAGES, KINDS, PREFIX, shared, tiny
from tests.marks import few, slow_on_jax


@few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_row_sums(kind):
    model = shared(kind)
    before = model.get_config()
    maps = attention_maps(model, IMAGES)
    assert maps.shape == (3, 3, 2, *[6 + PREFIX[kind]] * 2) and maps.dtype == np.float32
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    rollout = attention_rollout(model, IMAGES)
    assert rollout.shape == (3, 3, 2) and rollout.min() >= 0 and rollout.sum((1, 2)).max() <= 1 + 1e-5
    assert model.get_config() == before


@pytest.mark.backend
def test_maps_are_those_of_the_forward_pass():
    model = tiny()
    block = model.get_layer("block_2")
    tokens = keras.Model(model.input, model.get_layer("block_1").output)(IMAGES)
    qkv = np.asarray(block.attention.qkv(block.norm1(tokens))).reshape(3, 7, 3, 2, 16)
    logits = np.einsum("bthd,bshd->bhts", qkv[:, :, 0], qkv[:, :, 1]) / 4
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(attention_maps(model, IMAGES)[2], expected, atol=1e-5)


@slow_on_jax
@pytest.mark.backend
@pytest.mark.parametrize("kind, read", [("token", [0]), ("distilled", [0, 1]), ("registers", range(2, 8))])
def test_rollout_by_hand(kind, read):
    model = shared(kind)
    maps, prefix = attention_maps(model, IMAGES), PREFIX[kind]
    for i in range(3):
        joint = np.eye(6 + prefix)
        for layer in range(3):
            joint = (maps[layer, i].mean(0) + np.eye(6 + prefix)) / 2 @ joint
        expected = joint[list(read), prefix:].mean(0).reshape(3, 2)
        np.testing.assert_allclose(attention_rollout(model, IMAGES)[i], expected, atol=1e-5)


@pytest.mark.parametrize("fusion, fuse", [("max", np.max), ("min", np.min)])
def test_rollout_of_other_fusions_and_fewer_scores_by_hand(fusion, fuse):
    model = tiny()
    maps = attention_maps(model, IMAGES)
    joint = np.eye(7)
    for scores in maps[:, 1]:
        kept = fuse(scores, axis=0)
        kept[kept < np.sort(kept.ravel())[24]] = 0  # half of the 49, rounded down
        kept = kept / kept.sum(-1, keepdims=True).clip(1e-12) + np.eye(7)
        joint = kept / kept.sum(-1, keepdims=True) @ joint
    found = attention_rollout(model, IMAGES, fusion=fusion, discard=0.5)
    np.testing.assert_allclose(found[1], joint[0, 1:].reshape(3, 2), atol=1e-5)
    assert np.abs(found - attention_rollout(model, IMAGES)).max() > 1e-3


@pytest.mark.backend
def test_attention_from_a_patch_and_from_what_is_read():
    model = shared("distilled")
    maps = attention_maps(model, IMAGES)
    found = attention_from(model, IMAGES, (2, 1))
    np.testing.assert_allclose(found, maps[:, :, :, 4 + 5, 4:].reshape(3, 3, 2, 3, 2), atol=1e-6)
    read = maps[:, :, :, :2, 4:].mean(3)
    np.testing.assert_allclose(attention_from(model, IMAGES), read.reshape(3, 3, 2, 3, 2), atol=1e-6)


def test_distance_of_even_attention_is_the_mean_distance():
    model = tiny(tokens={"registers": 1})
    for block in ("block_0", "block_1", "block_2"):
        model.get_layer(block).attention.qkv.kernel.assign(np.zeros((32, 96)))  # no head prefers any token
    places = [(4 * row, 4 * column) for row in range(3) for column in range(2)]  # patches of 4 pixels
    expected = np.mean([np.hypot(a - c, b - d) for a, b in places for c, d in places])
    np.testing.assert_allclose(attention_distance(model, IMAGES), np.full((3, 2), expected), rtol=1e-5)


def test_distance_of_a_head_that_looks_at_its_own_place_is_none():
    model = tiny()
    encoder, attention = model.get_layer("encoder"), model.get_layer("block_0").attention
    encoder.position_embedding.assign(100 * np.pad(np.eye(7), ((0, 0), (0, 25)))[None])  # each token an axis of its own
    kernel = np.zeros((32, 96))
    kernel[:16, :16] = kernel[:16, 32:48] = 9 * np.eye(16)  # the first head's query and key are that axis
    attention.qkv.kernel.assign(kernel)
    local, even = attention_distance(model, IMAGES)[0]
    assert local < 0.01 and even > 4


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="multiply by 255"):
        attention_maps(shared("token"), IMAGES / 255.0)
    with pytest.raises(ValueError, match=r"shape=\(3, 8, 12, 3\)"):
        attention_maps(shared("token"), IMAGES.transpose(0, 2, 1, 3))
    with pytest.raises(ValueError, match=r"grid of 3 x 2, from 0\. Received: \(3, 0\)"):
        attention_from(shared("token"), IMAGES, (3, 0))
    with pytest.raises(ValueError, match="fusion='median'"):
        attention_rollout(shared("token"), IMAGES, fusion="median")
    with pytest.raises(ValueError, match=r"discard=1\.5"):
        attention_rollout(shared("token"), IMAGES, discard=1.5)
