"""What a model of clips attends to: maps over tubelets."""

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.explain import attention_distance, attention_from, position_similarity
from keras_vit.models import anatomy
from tests.checkpoints.helpers import randomized

pytestmark = pytest.mark.backend

SMALL = dict(variant=None, frames=6, image_size=(8, 12), patch_size=4, width=16, depth=2, num_heads=2, num_classes=3)
CLIPS = np.random.default_rng(0).integers(0, 256, (2, 6, 8, 12, 3)).astype("uint8")


@pytest.fixture(scope="module")
def model():
    return randomized(keras_vit.video_vit(**SMALL))


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


def test_relevance_is_of_what_raises_the_logit(model):
    found = keras_vit.attention_relevance(model, CLIPS, classes=1)
    assert found.shape == (2, 3, 2, 3) and (found >= 0).all() and found.max() > 0


def test_what_has_no_meaning_for_clips_is_refused(model):
    both = randomized(keras_vit.video_vit(**SMALL, time_depth=1))
    for call, message in (
        (lambda: keras_vit.attention_rollout(both, CLIPS), "all of space and time at once"),
        (lambda: attention_from(model, CLIPS, (3, 0, 0)), r"\(step, row, column\) on a grid of 3 x 2 x 3, from 0"),
        (lambda: attention_distance(model, CLIPS), "which takes clips"),
        (lambda: keras_vit.features(model, [-1]), "pass reshape=False. Received: .*takes clips"),
        (lambda: keras_vit.attention_maps(model, CLIPS[:, :4]), r"shape \(batch, 6, 8, 12, 3\)"),
        (lambda: keras_vit.attention_maps(model, CLIPS / 255.0), "multiply by 255"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert keras.backend.backend()
