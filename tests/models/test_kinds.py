import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.models import kinds
from keras_vit.models.kinds import KINDS, Kind, kind_of
from keras_vit.models.outputs import num_classes
from keras_vit.tasks import Detect, Restore, Segment
from keras_vit.tasks.base import Task

DENSE = [keras.Input((2,)), keras.layers.Dense(2)]
NUMBERS = np.random.default_rng(0).uniform(0, 255, (2, 8, 8, 3))


def test_a_model_s_last_layer_says_what_it_returns():
    detector = Detect(classes=("a", "b"), most=5, head={"kind": "points", "width": 4}).model(
        variant="mu/8", image_size=16
    )
    restorer = Restore(noise=1.0).model(variant="mu/4", stem=((4, 1),), patch_size=4, image_size=8)
    segmenter = Segment(classes=("a", "b")).model(variant="mu/8", image_size=16)
    assert kind_of(detector) is KINDS["boxes"] and num_classes(detector) == 2
    assert kind_of(restorer) is KINDS["image"] and num_classes(restorer) == 3
    assert kind_of(segmenter) is KINDS["classes"] is kind_of(keras.Sequential(DENSE))
    kinds.note(segmenter, "masks")
    assert kind_of(segmenter) is KINDS["masks"]
    assert kind_of(keras.Model(segmenter.input, segmenter.get_layer("map").output)) is KINDS["classes"]
    kinds.note(detector, "boxes")
    assert kinds.GIVES not in detector.get_layer("rescale").metadata  # its last layer says it


def test_an_unknown_kind_is_named(monkeypatch):
    model = vit("mu/4", image_size=8, num_classes=2)
    kinds.note(model, "sounds")
    with pytest.raises(ValueError, match="must be one of 'classes', 'numbers', .*Received: 'sounds'"):
        kind_of(model)
    with pytest.raises(ValueError, match="`gives` must be one of .*Received: gives='sounds'"):
        type("Sounds", (Task,), {"gives": "sounds"})
    monkeypatch.setitem(KINDS, "sounds", Kind(names=("sounds",)))
    assert kind_of(keras.models.clone_model(model)) is KINDS["sounds"]


def test_what_is_packed_is_what_was_named():
    outputs = NUMBERS.reshape(2, 64, 3).repeat(2, -1)
    for name, kind in KINDS.items():
        for shares in (False, True):
            found = kind.named(outputs, (10, 20), shares)
            assert set(found) <= set(kind.names) and kinds.of_outputs(found).names == kind.names, name
            np.testing.assert_allclose(kind.packed(found, (10, 20)), outputs, rtol=1e-6)
    assert kinds.of_outputs(["anything"]) is KINDS["classes"]


def test_numbers_stay_and_agree_by_the_top_class_or_the_sign():
    kind = KINDS["classes"]
    assert kind.aligned(NUMBERS, NUMBERS[:1])[0] is NUMBERS
    assert kind.largest(NUMBERS + 2, NUMBERS) == pytest.approx(2)
    assert kind.agreement(np.eye(2), np.array([[1, 0], [1, 0]])) == 0.5
    assert kind.agreement(np.array([[1.0], [-2.0], [3.0], [0.1]]), np.array([[2.0], [-1.0], [3.0], [-0.1]])) == 0.75


def test_of_images_all_pixels_are_one_vector_and_equal_values_count():
    kind, outputs = KINDS["image"], NUMBERS.copy()
    outputs[0, :4] += 1
    ours, theirs = kind.aligned(outputs, NUMBERS)
    assert ours.shape == (2, 192) and kind.largest(ours, theirs) == pytest.approx(1)
    assert kind.agreement(ours, theirs) == 0.75
