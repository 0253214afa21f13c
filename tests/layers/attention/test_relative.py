import keras
import numpy as np
import pytest

from keras_vit import MultiHeadSelfAttention, RelativePositions
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

GRID, HEADS = (2, 3), 2
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(2, HEADS, 7, 7)).astype("float32")


@pytest.mark.parametrize("num_prefix", [0, 1, 3])
def test_layer(num_prefix, tmp_path):
    shape = (2, HEADS, 6 + num_prefix, 6 + num_prefix)
    run_layer_test(
        lambda dtype: RelativePositions(GRID, num_prefix=num_prefix, dtype=dtype), shape, shape, tmp_path=tmp_path
    )


def test_equal_distances_have_equal_numbers():
    """Query by query and key by key, as the page says it."""
    layer = RelativePositions(GRID, num_prefix=1)
    layer.build(LOGITS.shape)
    table = RNG.normal(size=layer.table.shape).astype("float32")
    layer.table.assign(table)
    assert table.shape == (3 * 5 + 3, HEADS)
    added = keras.ops.convert_to_numpy(layer(LOGITS)) - LOGITS
    for query in range(7):
        for key in range(7):
            if query and key:
                (y, x), (yk, xk) = divmod(query - 1, 3), divmod(key - 1, 3)
                row = (y - yk + 1) * 5 + (x - xk + 2)
            else:
                row = {(True, False): 15, (False, True): 16, (True, True): 17}[not query, not key]
            np.testing.assert_allclose(added[0, :, query, key], table[row], atol=1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_attention_adds_them_before_the_softmax(training):
    tokens = RNG.normal(size=(2, 7, 8)).astype("float32")
    layer = MultiHeadSelfAttention(HEADS, relative={"grid": GRID, "num_prefix": 1})
    layer.build(tokens.shape)
    layer.distances.table.assign(RNG.normal(size=layer.distances.table.shape))
    query, key, value = (
        keras.ops.convert_to_numpy(part).reshape(2, 7, HEADS, 4)
        for part in np.split(np.asarray(layer.qkv(tokens)), 3, -1)
    )
    logits = np.einsum("bqhc,bkhc->bhqk", query, key) / 2 + keras.ops.convert_to_numpy(layer.distances.bias())
    scores = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = layer.proj(np.einsum("bhqk,bkhc->bqhc", scores, value).reshape(2, 7, 8))
    found, by_layer = layer(tokens, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(by_layer), scores, atol=1e-5)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=1e-5)
    np.testing.assert_allclose(np.asarray(layer(tokens, training=training)), np.asarray(expected), atol=1e-5)


def test_another_number_of_tokens_is_named():
    with pytest.raises(ValueError, match=r"There must be 1 \+ 6 tokens. Received: input_shape=\(2, 2, 6, 6\)"):
        RelativePositions(GRID, num_prefix=1)(LOGITS[:, :, :6, :6])
