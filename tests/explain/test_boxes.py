import dataclasses

import numpy as np
import pytest
from keras import ops

from keras_vit.explain import attention_maps, attention_of_boxes
from keras_vit.layers import DeformableAttention, QueryDecoder
from keras_vit.tasks import Detect
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

TASK = Detect(classes=("a", "b"), most=6, head={"kind": "decoder", "depth": 2})
SMALL = dict(variant="mu/8", image_size=(32, 48), tokens={"class_token": True}, depth=2)
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 32, 48, 3)).astype("float32")


def shaken(model):
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(np.asarray(variable) + 0.3 * rng.normal(size=variable.shape))
    return model


@slow_on_jax
def test_queries_look_where_the_last_block_does():
    model = shaken(TASK.model(**SMALL))
    maps = attention_of_boxes(model, IMAGES)
    assert maps.shape == (3, 6, 4, 6) and maps.dtype == np.float32
    np.testing.assert_allclose(maps.sum((2, 3)), 1, atol=1e-5)
    assert np.ptp(maps, axis=1).max() > 0.01  # each looks elsewhere
    decoder = next(layer for layer in model.layers if isinstance(layer, QueryDecoder))
    tokens = np.random.default_rng(2).normal(size=(2, 24, 32)).astype("float32")
    found, scores = decoder(tokens, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(found), np.asarray(decoder(tokens)), atol=1e-5)
    assert scores.shape == (2, model.get_layer("block_0").num_heads, 6, 24)


def test_the_scores_are_those_of_queries_and_keys_by_hand():
    decoder = QueryDecoder(2, 3, 1, 8, depth=1, grid=(2, 2))
    tokens = np.random.default_rng(2).normal(size=(1, 4, 8)).astype("float32")
    _, scores = decoder(tokens, return_attention_scores=True)
    block = decoder.blocks[0]
    x = ops.zeros((1, 3, 8))
    y = block.norm1(x + block.attention(x, x, positions=decoder.query[None], context_positions=decoder.query[None]))
    query = np.asarray(block.cross.query(y + decoder.query[None]))[0]
    key = np.asarray(block.cross.key(tokens + decoder.positions))[0]
    logits = query @ key.T / np.sqrt(8)
    wanted = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(scores)[0, 0], wanted, atol=1e-5)


@slow_on_jax
def test_queries_look_at_the_places_that_they_chose():
    head = {"kind": "deformable", "depth": 2, "width": 32, "groups": 1}
    model = shaken(dataclasses.replace(TASK, head=head).model(**SMALL))
    maps = attention_of_boxes(model, IMAGES)
    assert maps.shape == (3, 6, 4, 6) and (maps >= 0).all() and (maps.sum((2, 3)) <= 1 + 1e-5).all()
    boxes = np.asarray(model(IMAGES))[..., :4]
    inside = [i for i in np.ndindex(3, 6) if (boxes[i][:2] > 0.2).all() and (boxes[i][2:] < 0.8).all()]
    assert all(abs(maps[i].sum() - 1) < 0.5 for i in inside)
    layer = DeformableAttention(2, points=1)
    x, references = np.zeros((1, 1, 8), "float32"), np.array([[[0.3, 0.8, 0.2, 0.2]]], "float32")
    features = np.random.default_rng(3).normal(size=(1, 4, 5, 8)).astype("float32")
    output, scores = layer(x, references, features, return_attention_scores=True)
    value = np.asarray(layer.value(features))[0].reshape(20, 2, 4)
    summed = np.einsum("hc,chd->hd", np.asarray(scores)[0, :, 0].reshape(2, 20), value).reshape(1, 8)
    np.testing.assert_allclose(np.asarray(output)[0], np.asarray(layer.proj(summed)), atol=1e-5)


@slow_on_jax
def test_tokens_look_where_the_encoder_does():
    model = shaken(dataclasses.replace(TASK, head="tokens").model(**SMALL))
    maps = attention_of_boxes(model, IMAGES)
    wanted = attention_maps(model, IMAGES)[-1].mean(1)[:, 1:7, 7:]
    np.testing.assert_allclose(maps.reshape(3, 6, 24), wanted, atol=1e-6)


@slow_on_jax
def test_points_have_no_queries():
    with pytest.raises(ValueError, match="must be a detector with queries or tokens of boxes. Received: 'vit_mu_8'"):
        attention_of_boxes(dataclasses.replace(TASK, head={"kind": "points", "width": 8}).model(**SMALL), IMAGES)
    with pytest.raises(ValueError, match="must be a detector with queries or tokens of boxes"):
        attention_of_boxes(TASK.learner(TASK.model(**SMALL)), IMAGES)
