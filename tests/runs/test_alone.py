import numpy as np
import pytest

import keras_vit
from keras_vit import config
from keras_vit.runs.alone import names_of, task_of
from keras_vit.traits import Traits
from tests import owls
from tests.towers import WORDS

pytestmark = pytest.mark.backend


def detector():
    return keras_vit.zero_shot_detector(owls.shared(), ["cat", "dog", "car"], WORDS, most=2, threshold=0.25)


def test_a_model_s_output_shows_its_task():
    model = detector()
    task = task_of(Traits(model))
    assert isinstance(task, config.Detect) and task.most == 2 and task.of_model(model).score == 0.25
    classifier = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    assert type(task_of(Traits(classifier))) is config.Classify and not task_of(Traits(classifier)).multilabel


def test_names_are_the_model_s_or_numbers():
    assert names_of(Traits(detector()), "a.keras") == ("cat", "dog", "car")
    classifier = Traits(keras_vit.vit("mu/4", image_size=8, num_classes=3))
    assert names_of(classifier, "a.keras") == ("0", "1", "2")
    assert names_of(classifier, "a.keras", lambda: ("x", "y", "z")) == ("x", "y", "z")


def test_a_model_of_images_has_an_answer():
    with pytest.raises(ValueError, match="'a.keras' must be an image classifier: it has no head. Received: output"):
        names_of(Traits(keras_vit.vit("mu/4", image_size=8, num_classes=0)), "a.keras")
    with pytest.raises(ValueError, match="must take images alone: .* Received: 2 inputs"):
        names_of(Traits(owls.shared()), "a.keras")


def test_a_detector_is_loaded_as_a_run_is():
    trained = keras_vit.load_run(detector())
    assert trained.task.classes == ("cat", "dog", "car")
    found = trained.task.result(np.array([[0.1, 0.2, 0.5, 0.6, 0.1, 0.9, 0.2]]), (100, 200))
    assert found == [{"category": "dog", "bbox": [40.0, 10.0, 80.0, 40.0], "score": 0.9}]
