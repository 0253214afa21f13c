import keras
import numpy as np
import pytest

from keras_vit import PatchEncoder, Patches, TokenPool, TransformerBlock
from keras_vit.explain import inside
from keras_vit.models.between import between
from tests.explain.models import IMAGES, KINDS, PREFIX, shared, tiny


@pytest.mark.parametrize("kind", KINDS)
def test_reading_is_the_pools_rule(kind):
    model = shared(kind)
    row = inside.reading(model, IMAGES)[1]
    prefix = PREFIX[kind]
    np.testing.assert_allclose(row.sum(), 1, atol=1e-6)
    expected = {
        "token": [1] + [0] * 6,
        "hybrid": [1] + [0] * 6,
        "gap": [1 / 6] * 6,
        "registers": [0, 0] + [1 / 6] * 6,
        "distilled": [0.5, 0.5] + [0] * 8,
        "both": [1 / 2] + [1 / 12] * 6,
        "last": [0] * 5 + [1],
    }
    if kind.startswith("map"):
        assert row.shape == (6 + prefix,) and row.min() > 0
    else:
        np.testing.assert_allclose(row, expected[kind], atol=1e-6)
        assert len(row) == 6 + prefix


def test_attention_pooling_is_read_by_its_own_scores():
    model = tiny(pooling="map")
    pool = model.get_layer("pool")
    tokens = keras.Model(model.input, pool.input)(IMAGES)
    query = np.einsum("w,whd->hd", pool.probe.numpy()[0, 0], pool.attention._query_dense.kernel.numpy())
    keys = np.einsum("btw,whd->bthd", np.asarray(tokens), pool.attention._key_dense.kernel.numpy())
    logits = np.einsum("hd,bthd->bht", query, keys) / 4  # biases start from zero
    expected = (np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)).mean(1)
    np.testing.assert_allclose(inside.reading(model, IMAGES), expected, atol=1e-5)


def test_parts_of_a_batch_are_joined(monkeypatch):
    seen = []

    def add(model, images, labels):
        seen.append(len(images))
        return images.sum((1, 2, 3)) + labels

    images = np.concatenate([IMAGES] * 4)
    monkeypatch.setattr(inside, "SCORES", 5 * 3 * 2 * 7**2)  # of five images
    found = inside.in_parts(add, tiny(), images, np.arange(12))
    assert seen == [5, 5, 2]
    np.testing.assert_array_equal(found, images.sum((1, 2, 3)) + np.arange(12))


def test_a_pool_of_all_tokens_reads_all():
    inputs = keras.Input((12, 8, 3))
    x = TransformerBlock(2, 32)(PatchEncoder(16)(Patches(4)(inputs)))
    model = keras.Model(inputs, TokenPool("gap", num_prefix=0)(x))
    np.testing.assert_allclose(inside.reading(model, IMAGES), np.full((3, 7), 1 / 7))


def test_between_two_tensors_is_computed_and_adds_no_nodes():
    model = tiny(tokens={"distilled": True})
    middle, nodes = model.get_layer("block_1").output, [len(layer._inbound_nodes) for layer in model.layers]
    (value,) = inside.run(model, [middle], IMAGES)
    found = between(middle, model.outputs[0], value)
    np.testing.assert_allclose(np.asarray(found), np.asarray(model(IMAGES)), atol=1e-5)
    assert [len(layer._inbound_nodes) for layer in model.layers] == nodes
