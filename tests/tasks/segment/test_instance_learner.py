import keras
import numpy as np
import pytest

from keras_vit.models.map_heads import head_of
from keras_vit.tasks.segment.instance_learner import InstanceLearner
from keras_vit.tasks.segment.segment import Segment
from tests.tasks.segment.test_objects import CLASSES, IMAGES, SMALL

pytestmark = pytest.mark.backend
HEAD = {"kind": "deformable", "queries": 4, "width": 16, "depth": 2, "groups": 2}


def built(**more):
    model = Segment(kind="instance", classes=CLASSES, head=HEAD).model(**SMALL, **more)
    rng = np.random.default_rng(0)
    model.set_weights([value + 0.1 * rng.normal(size=value.shape) for value in model.get_weights()])
    return model


def test_the_last_stage_of_the_first_group_is_the_model(tmp_path):
    model = built()
    learner = InstanceLearner(model)
    own, found = np.asarray(model(IMAGES)), np.asarray(learner(IMAGES))
    assert found.shape == (2, 3, 1, 4, 4 + 2 + 4 * 6) and learner.output_shape == (None, *found.shape[1:])
    trained = np.asarray(learner(IMAGES, training=True))
    assert trained.shape == (2, 3, 2, 4, 30)
    np.testing.assert_allclose(trained[:, :, :1], found, atol=1e-5)
    assert np.abs(trained[:, :, 0] - trained[:, :, 1]).max() > 1e-3
    last = found[:, -1, 0]
    np.testing.assert_allclose(np.clip(last[..., :4], 0, 1), own[..., :4], atol=1e-6)
    np.testing.assert_allclose(1 / (1 + np.exp(-last[..., 4:6])), own[..., 4:6], atol=1e-6)
    np.testing.assert_allclose(last[..., 6:], own[..., 6:], atol=1e-5)
    boxes = keras.Model(model.input, model.get_layer("boxes").input)(IMAGES)
    np.testing.assert_allclose(found[:, :, 0, :, :6], np.asarray(boxes), atol=1e-5)
    assert head_of(model)["masks"] == 4  # the model's layers have no second input
    assert len(learner.weights) == len(model.weights)
    learner.save(tmp_path / "learner.keras")
    again = keras.models.load_model(tmp_path / "learner.keras")
    np.testing.assert_allclose(np.asarray(again(IMAGES)), found, atol=1e-6)


def test_half_precision():
    model = built(dtype="mixed_float16")
    learner = InstanceLearner(model)
    found = learner(IMAGES, training=True)
    assert keras.backend.standardize_dtype(found.dtype) == "float32" and np.isfinite(np.asarray(found)).all()
    assert learner.dtype_policy.name == "mixed_float16"
