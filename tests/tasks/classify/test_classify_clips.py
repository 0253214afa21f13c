import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras
import tensorflow as tf

import keras_vit
from keras_vit.config import Augment, Classify, ClassifyClips, Data, Optim, Recipe, check_recipe
from keras_vit.data.clip_source import Sampling
from tests.checkpoints.helpers import unexpected

MODEL = dict(variant=None, image_size=8, patch_size=4, width=8, depth=1, num_heads=2, num_classes=3)
CLIPS = np.random.default_rng(0).integers(0, 256, (6, 4, 8, 8, 3)).astype("float32")


def recipe(augment=None, optim=None, model=None, **task):
    return Recipe(
        name="clips",
        task=ClassifyClips(**{"frames": 4, **task}),
        model={**MODEL, **(model or {})},
        data=Data(source="folder:clips", batch_size=2),
        augment=Augment(**(augment or {})),
        optim=Optim(**(optim or {})),
    )


def test_what_contradicts_clips_is_refused():
    from tests.clipfiles import moving

    assert moving(3).shape[0] == 3 and check_recipe(recipe()) is not None
    calls = [
        (dict(sampling="segments", stride=2), "stride must be 1. Received: task.stride=2"),
        (dict(crops=3), "data.resize must be the shorter side in pixels"),
        (dict(distill="soft"), "has no teacher. Received: task.distill='soft'"),
        (dict(model={"frames": 4}), "The frames are task.frames. Received: model.frames=4"),
        (dict(model={"rotary": "dinov3"}), "rotary"),
        (dict(augment={"randaugment": 2}), "augment.randaugment is for images, not for clips"),
        (dict(augment={"layers": (keras.layers.RandomContrast(0.1),)}), "augment.layers is for images"),
    ]
    assert not unexpected([(lambda given=given: check_recipe(recipe(**given)), text) for given, text in calls])
    images = dataclasses.replace(recipe(), task=Classify(), model={**MODEL, "tubelet": 2})
    with pytest.raises(ValueError, match="`vit` has no argument 'tubelet'"):
        check_recipe(images)
    with pytest.raises(ValueError, match="A clip has one label. Received: ClassifyClips with multilabel=True"):
        ClassifyClips(multilabel=True)


def test_the_model_says_how_its_frames_are_sampled():
    task = ClassifyClips(frames=4, stride=3)
    model = task.model(**MODEL)
    assert model.input_shape == (None, 4, 8, 8, 3) and task.clips == Sampling(4, 3)
    assert ClassifyClips.of_clips(model) == task
    other = ClassifyClips(frames=6, sampling="segments")
    assert ClassifyClips.of_clips(other.model(**MODEL)) == other and other.clips.segments
    assert task.data_shape((4, 8, 12, 3)) == task.data_shape((8, 12, 3)) == (8, 12, 12)


def test_batches_have_time_again():
    from keras_vit.data.packing import folded

    task = ClassifyClips(frames=4, classes=("a", "b"))
    examples = {"images": tf.constant(folded(CLIPS)), "labels": tf.constant([0, 1] * 3)}
    examples = task.prepare(examples, tf.constant([0, 1]))
    np.testing.assert_array_equal(examples["images"], CLIPS)
    x, y = task.batch(examples, None, tf.constant([0, 1]))
    np.testing.assert_array_equal(x, CLIPS)
    np.testing.assert_array_equal(y, np.eye(2)[[0, 1] * 3])
    x, y = task.batch(examples, Augment(cutmix=1.0), tf.constant([0, 1]))
    pasted = np.abs(x - CLIPS).max(axis=(0, 4)) > 0  # (frames, rows, columns)
    assert pasted.any() and (pasted == pasted[:1]).all() and np.asarray(y).max() < 1


def test_a_picture_has_frames_side_by_side():
    task = ClassifyClips(frames=4, classes=("a", "b"))
    assert task.picture(CLIPS[0], np.zeros(2)).shape == (8, 4 * 8 + 3, 3)  # with gaps
    assert task.picture(np.zeros((16, 8, 8, 1)), np.zeros(2)).shape == (8, 4 * 8 + 3, 3)  # with gaps
    np.testing.assert_array_equal(task.picture(CLIPS[0], np.zeros(2))[:, 9:17], CLIPS[0, 1])


def test_it_starts_from_a_model_of_images(tmp_path):
    images = keras_vit.vit("mu/4", image_size=8, num_classes=5, depth=1)
    images.save(tmp_path / "m.keras")
    task = ClassifyClips(frames=4, stride=2)
    model = task.model(weights=str(tmp_path / "m.keras"), image_size=8, num_classes=3, channels=3, tubelet=2)
    assert model.input_shape == (None, 4, 8, 8, 3) and model.output_shape == (None, 3)
    assert ClassifyClips.of_clips(model) == task
    own = keras.ops.convert_to_numpy(images.get_layer("block_0").mlp.fc1.kernel)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(model.get_layer("block_0").mlp.fc1.kernel), own)
