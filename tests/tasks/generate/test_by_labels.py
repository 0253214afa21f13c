import numpy as np

from keras_vit.config import Generate
from keras_vit.tasks.generate.by_labels import ByLabels
from tests.dits import of_texts, small


def test_labels_are_known_by_their_classes():
    task = Generate(classes=("cat", "dog", "7"))
    rules = task.rules
    assert type(rules) is ByLabels and rules.none() == 3 and rules.inputs[-1] == "labels"
    assert rules.fits(small()) and not rules.fits(of_texts()) and not Generate(classes=("a",)).fits(small())
    assert task.caption(np.zeros((8, 12, 1)), {"labels": 2}) == "7"
    assert rules.classes_for({"num_classes": 3}) == task.classes
    assert Generate().classes_for({"num_classes": 2}) == ("0", "1")
    assert task.of_model(small()) == task and rules.prepare({"a": 1}, None) == {"a": 1}


def test_sizes():
    assert Generate().size_of(None) is None
    assert Generate().size_of({"image_size": 8, "channels": 1}) == (8, 8, 1)
    assert Generate().size_of({"image_size": (8, 12), "channels": 3}) == (8, 12, 3)
