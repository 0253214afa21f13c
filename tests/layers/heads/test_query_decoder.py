import keras
import numpy as np
import pytest

from keras_vit.layers import QueryDecoder

pytestmark = pytest.mark.backend

TOKENS = np.random.default_rng(0).normal(size=(2, 12, 16)).astype("float32")


def decoder(**more):
    return QueryDecoder(3, 5, 2, 32, **{"depth": 3, "grid": (3, 4), **more})


def test_the_head_reads_the_queries_after_each_block():
    layer = decoder()
    found = np.asarray(layer(TOKENS))
    assert found.shape == (2, 3, 5, 8)
    x = np.zeros((2, 5, 16), "float32")
    places, query = np.asarray(layer.positions, "float32"), np.asarray(layer.query)[None]
    for i, block in enumerate(layer.blocks):
        x = block(x, TOKENS, positions=query, context_positions=places)
        np.testing.assert_allclose(found[:, i], np.asarray(layer.head(layer.norm(x))), atol=1e-5)
    assert np.abs(found[:, 0, 0] - found[:, 0, 1]).max() > 1e-3  # the queries differ


def test_is_saved_and_runs_in_16_bits():
    again = keras.layers.deserialize(keras.layers.serialize(decoder(dropout=0.1)))
    assert (again.queries, again.depth, again.grid, again.dropout) == (5, 3, (3, 4), 0.1)
    assert decoder(dtype="mixed_bfloat16")(TOKENS).dtype == "float32"
    inputs = keras.Input((12, 16))
    assert keras.Model(inputs, decoder()(inputs)).output_shape == (None, 3, 5, 8)


def test_the_grid_must_have_a_place_for_each_token():
    with pytest.raises(ValueError, match=r"a token for each place of \(3, 5\). Received: 12 tokens"):
        decoder(grid=(3, 5))(TOKENS)
    with pytest.raises(ValueError, match="`depth` must be a positive integer. Received: depth=0"):
        decoder(depth=0)
