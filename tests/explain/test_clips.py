"""What a model of clips attends to: maps over tubelets."""

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.explain import attention_distance, attention_from, inside, position_similarity
from keras_vit.explain.relevance import gradients
from keras_vit.models import anatomy
from tests.checkpoints.helpers import randomized
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

SMALL = dict(variant=None, frames=6, image_size=(8, 12), patch_size=4, width=16, depth=2, num_heads=2, num_classes=3)
CLIPS = np.random.default_rng(0).integers(0, 256, (2, 6, 8, 12, 3)).astype("uint8")


@pytest.fixture(scope="module")
def model():
    return randomized(keras_vit.video_vit(**SMALL))


@slow_on_jax
def test_maps_are_over_steps_rows_and_columns(model):
    assert anatomy.grid(model) == (3, 2, 3)
    maps = keras_vit.attention_maps(model, CLIPS)
    assert maps.shape == (2, 2, 2, 19, 19)
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    assert keras_vit.attention_rollout(model, CLIPS).shape == (2, 3, 2, 3)
    patch = attention_from(model, CLIPS, (2, 1, 0))
    np.testing.assert_allclose(patch.reshape(2, 2, 2, 18), maps[:, :, :, 1 + 2 * 6 + 3, 1:], atol=1e-6)
    assert position_similarity(model).shape == (3, 2, 3) * 2
    assert keras_vit.features(model, [-1], reshape=False)(CLIPS)["block_1"].shape == (2, 19, 16)


@slow_on_jax
def test_relevance_is_of_what_raises_the_logit(model):
    found = keras_vit.attention_relevance(model, CLIPS, classes=1)
    assert found.shape == (2, 3, 2, 3) and (found >= 0).all() and found.max() > 0


def test_what_has_no_meaning_for_clips_is_refused(model):
    both = randomized(keras_vit.video_vit(**SMALL, time_depth=1))
    assert anatomy.grid(both, factorised=True) == (3, 2, 3)
    for call, message in (
        (lambda: keras_vit.attention_maps(both, CLIPS), "all of space and time at once"),
        (lambda: attention_from(both, CLIPS), "all of space and time at once"),
        (lambda: attention_from(model, CLIPS, (3, 0, 0)), r"\(step, row, column\) on a grid of 3 x 2 x 3, from 0"),
        (lambda: attention_distance(model, CLIPS), "which takes clips"),
        (lambda: keras_vit.features(model, [-1]), "pass reshape=False. Received: .*takes clips"),
        (lambda: keras_vit.attention_maps(model, CLIPS[:, :4]), r"shape \(batch, 6, 8, 12, 3\)"),
        (lambda: keras_vit.attention_maps(model, CLIPS / 255.0), "multiply by 255"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert keras.backend.backend()


STEPS, PATCHES = 3, 6


def factorised(pooling, **options):
    return randomized(keras_vit.video_vit(**SMALL | {"depth": 2, "time_depth": 2, "pooling": pooling} | options))


def joined(space, time, prefix, pooled):
    """Returns the product of the matrices of all blocks, where patches of other steps are not attended to.

    Args:
        space: The matrices of each spatial block, `(steps, tokens, tokens)`.
        time: The matrix of each temporal block, `(1 + steps, 1 + steps)`.
        prefix: Number of prefix tokens.
        pooled: The row that pools the tokens of a step.
    """
    tokens = len(pooled)
    flow, pool = np.eye(STEPS * tokens), np.zeros((1 + STEPS, STEPS * tokens))
    for matrices in space:
        whole = np.zeros_like(flow)
        for step, matrix in enumerate(matrices):
            whole[step * tokens : (step + 1) * tokens, step * tokens : (step + 1) * tokens] = matrix
        flow = whole @ flow
    for step in range(STEPS):
        pool[1 + step, step * tokens : (step + 1) * tokens] = pooled
    flow = pool @ flow
    for matrix in time:
        flow = matrix @ flow
    return flow[0].reshape(STEPS, tokens)[:, prefix:].reshape(STEPS, 2, 3)


def pooled_by(pooling):
    return np.eye(1 + PATCHES)[0] if pooling == "token" else np.full(PATCHES, 1 / PATCHES)


@pytest.mark.parametrize("pooling", [pytest.param("token", marks=slow_on_jax), "gap"])
def test_rollout_of_a_factorised_encoder_is_that_of_patches_that_see_their_step_only(pooling):
    model, prefix = factorised(pooling), int(pooling == "token")
    found = keras_vit.attention_rollout(model, CLIPS)
    assert found.shape == (2, 3, 2, 3) and found.sum() < 2
    maps = [np.mean(each, axis=1) for each in inside.each_scores(model, CLIPS.astype("float32"))]
    half = [(each + np.eye(each.shape[-1])) / 2 for each in maps]
    for i in range(2):
        space = [each[i * STEPS : (i + 1) * STEPS] for each in half[:2]]
        expected = joined(space, [each[i] for each in half[2:]], prefix, pooled_by(pooling))
        np.testing.assert_allclose(found[i], expected, atol=1e-6)


def test_a_place_in_a_map_is_that_of_its_pixels():
    """Places are of step, row and column: else a map of the clip has bars."""
    model, place = factorised("gap"), (2, 1, 0)
    tokens = keras.Model(model.input, anatomy.blocks(model)[0].input)
    other = CLIPS[:1].copy()
    other[:, 4:6, 4:8, 0:4] = 255 - other[:, 4:6, 4:8, 0:4]
    before, after = (keras.ops.convert_to_numpy(tokens(clip.astype("float32"))) for clip in (CLIPS[:1], other))
    changed = np.abs(after - before).max(-1).reshape(anatomy.grid(model, factorised=True)) > 0
    assert np.argwhere(changed).tolist() == [list(place)]


def test_rollout_of_even_attention_by_hand():
    """Half of each row is its own place: at the class token 1 / 2 of the mean after one block, 3 / 4 after two."""
    for pooling, read in (("token", 1 / 2 / (1 + PATCHES)), ("gap", 1 / PATCHES)):
        model = factorised(pooling, depth=1)
        for block in anatomy.blocks(model):
            block.attention.qkv.kernel.assign(np.zeros(block.attention.qkv.kernel.shape))
            block.attention.qkv.bias.assign(np.zeros(block.attention.qkv.bias.shape))
        found = keras_vit.attention_rollout(model, CLIPS)
        np.testing.assert_allclose(found, np.full((2, 3, 2, 3), 3 / 4 / (1 + STEPS) * read), atol=1e-7)


@slow_on_jax
@pytest.mark.parametrize("pooling", ["token", "gap"])
def test_relevance_of_a_factorised_encoder(pooling):
    """With the gradients of all scores at once, and the matrices of equation 6 written out."""
    model, prefix = factorised(pooling), int(pooling == "token")
    clip, blocks = CLIPS[:1].astype("float32"), anatomy.blocks(model)
    scores = [*inside.each_scores(model, clip)]
    start, layers = keras.Model(model.input, blocks[0].input)(clip), [*model.layers]
    layers = layers[layers.index(blocks[0]) :]

    def logit(offsets):
        x, offsets = start, dict(zip(map(id, blocks), offsets))
        for layer in layers:
            x = layer(x, scores_offset=offsets[id(layer)]) if id(layer) in offsets else layer(x)
        return keras.ops.sum(x[:, 1])

    slopes = gradients(logit, [np.zeros_like(each) for each in scores])
    matrices = [np.maximum(a * b, 0).mean(1) + np.eye(a.shape[-1]) for a, b in zip(slopes, scores)]
    expected = joined(matrices[:2], [each[0] for each in matrices[2:]], prefix, pooled_by(pooling))
    found = keras_vit.attention_relevance(model, CLIPS, 1)
    assert found.shape == (2, 3, 2, 3) and np.ptp(expected) > 1e-3 * expected.max()
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-6 * expected.max())
