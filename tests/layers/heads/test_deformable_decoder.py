import keras
import numpy as np
import pytest

from keras_vit.layers import DeformableDecoder
from keras_vit.layers.heads.deformable_decoder import proposals, refined
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

TOKENS = [np.random.default_rng(i).normal(size=(2, 2 + 12, 16)).astype("float32") for i in range(2)]
SIZES = dict(width=16, depth=2, num_heads=2, cross_heads=4, mlp_dim=32, steps=1)


def decoder(**more):
    return DeformableDecoder((3, 4), 3, 5, **SIZES | more)


@slow_on_jax
def test_stages_and_groups():
    layer = decoder(groups=3)
    sets, queries, features = (np.asarray(each) for each in layer(TOKENS, return_queries=True))
    assert sets.shape == (2, 3, 5, 7) and queries.shape == (2, 2, 5, 16) and features.shape == (2, 3, 4, 16)
    assert layer(TOKENS, training=True).shape == (2, 3, 15, 7)
    np.testing.assert_allclose(np.asarray(layer(TOKENS, training=True))[:, :, :5], sets, atol=1e-5)  # without dropout
    best = sets[:, 0, :, 4:].max(-1)
    assert (np.diff(best, axis=1) <= 1e-6).all()  # the best proposals first
    *_, first = layer(TOKENS, return_queries=True, return_first=True)
    again = layer.stages[0].head(first, np.zeros((2, 5, 4), "float32"))[1]  # the logits follow from the vectors
    np.testing.assert_allclose(np.asarray(again), sets[:, 0, :, 4:], atol=1e-5)
    inputs = [keras.Input((14, 16)) for _ in range(2)]
    shapes = [each.shape for each in layer(inputs, return_queries=True, return_first=True)]
    assert shapes == [(None, 3, 5, 7), (None, 2, 5, 16), (None, 3, 4, 16), (None, 5, 16)]
    model = keras.Model(inputs, layer(inputs))
    assert model.output_shape == (None, 3, 5, 7)
    again = DeformableDecoder.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


def test_new_boxes_begin_as_proposals():
    layer = decoder()
    sets = np.asarray(layer(TOKENS))
    edges, logits = sets[..., :4], sets[..., 4:]
    np.testing.assert_allclose(edges[..., 2:] - edges[..., :2], 0.05, atol=1e-6)
    centers = (edges[:, 0, :, :2] + edges[:, 0, :, 2:]) / 2 * (3, 4) - 0.5
    np.testing.assert_allclose(centers, centers.round(), atol=1e-4)
    np.testing.assert_array_equal(edges[:, 0], edges[:, 2])
    assert np.median(1 / (1 + np.exp(-logits))) < 0.1


def test_cells_at_the_edge_of_a_large_map_propose_nothing():
    _, valid = proposals((60, 4))
    valid = valid.reshape(60, 4)
    assert not valid[[0, -1]].any() and valid[1:-1].all()
    boxes = np.array([[0.5, 0.5, 0.2, 0.4]], "float32")
    moved = np.asarray(refined(boxes, np.array([[1.0, -0.5, 0, np.log(2)]], "float32")))
    np.testing.assert_allclose(moved, [[0.7, 0.3, 0.2, 0.8]], atol=1e-6)


def test_half_precision_and_refusals():
    layer = decoder(dtype="mixed_bfloat16")
    sets = layer(TOKENS)
    assert keras.backend.standardize_dtype(sets.dtype) == "float32" and np.isfinite(np.asarray(sets)).all()
    assert layer.references.dtype == "float32"
    with pytest.raises(ValueError, match="at most the number of patches, 12. Received: queries=13"):
        DeformableDecoder((3, 4), 3, 13)
    with pytest.raises(ValueError, match="a multiple of 4. Received: width=18"):
        decoder(width=18)
    with pytest.raises(ValueError, match="with 3 x 4 patches. Received: .*11, 16"):
        decoder()(TOKENS[0][:, :11])
