import keras
import numpy as np
import pytest

from keras_vit import class_names, dit, video_vit, vit
from keras_vit.traits import Traits, traits_of
from tests import captions
from tests.towers import two_towers

SMALL = dict(variant=None, image_size=8, patch_size=4, width=16, depth=1, num_heads=2, channels=1)
pytestmark = pytest.mark.backend


def test_a_classifier():
    model = vit(**SMALL, num_classes=2, value_range=(0, 1))
    class_names(model, ["cat", "dog"])
    about = Traits(model)
    assert (about.structure, about.gives, about.classes, about.labels) == ("plain", "classes", 2, ("cat", "dog"))
    assert about.inputs == {"images": (8, 8, 1)} and about.size == (8, 8) and tuple(about.range) == (0, 1)
    assert about.tower is model and about.pairs and not about.shares and about.thresholds is None
    assert about.image_model is model and not about.reads_both
    assert tuple(about.rule["full_size"]) == (8, 8) and about.words == (None, 0)
    assert Traits(keras.Model(model.input, keras.ops.softmax(model.output))).shares


def test_the_size_of_clips_is_that_of_their_frames():
    about = Traits(video_vit(**{**SMALL, "image_size": (8, 12)}, frames=4, num_classes=2))
    assert about.inputs == {"clips": (4, 8, 12, 1)} and about.size == (8, 12)


def test_what_is_found_is_kept(monkeypatch):
    about = Traits(vit(**SMALL, num_classes=2))
    known = about.inputs
    monkeypatch.setattr("keras_vit.traits.inputs_of", None)
    assert about.inputs is known


def test_structures():
    assert Traits(dit(**SMALL, num_classes=3)).structure == "dit"
    writes = Traits(captions.small())
    assert writes.structure == "captioner" and writes.image_model is None
    both = two_towers()
    assert Traits(both).structure == "towers" and Traits(both).tower is both.get_layer("image")
    assert Traits(both).image_model is both.get_layer("image")
    assert Traits(np.zeros(3)).structure == "plain"


def test_only_models_of_one_kind_come_in():
    model = vit(**SMALL, num_classes=2)
    assert traits_of(model, "A classifier.", structure="plain", gives="classes").model is model
    with pytest.raises(ValueError, match=r"Two towers\. Received: 'vit_custom_4'"):
        traits_of(model, "Two towers.", structure="towers")
    with pytest.raises(ValueError, match=r"Depth\. Received: 'a\.keras'"):
        traits_of(model, "Depth.", "a.keras", structure="plain", gives="depth")
    with pytest.raises(TypeError, match="Keras model"):
        traits_of("a.keras", "Two towers.", structure="towers")
