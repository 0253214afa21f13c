import types

import pytest

from keras_vit.tasks import Classify, Detect
from keras_vit.tasks.class_names import named_by, numbered, ordered_by

DATA = types.SimpleNamespace(class_names=["cat", "dog"])
NAMELESS = types.SimpleNamespace(class_names=())


def test_a_task_has_the_classes_of_its_data():
    assert named_by(Classify(), DATA).classes == ("cat", "dog")
    assert named_by(Classify(), DATA, {"num_classes": None}).classes == ("cat", "dog")
    with pytest.raises(ValueError, match=r"must be the data's, \('cat', 'dog'\). Received: \('dog', 'cat'\)"):
        named_by(Classify(classes=("dog", "cat")), DATA)
    with pytest.raises(ValueError, match="as many classes as the data, 2. Received: 3 classes"):
        named_by(Classify(), DATA, {"num_classes": 3})


def test_classes_with_an_order_may_be_the_task_s():
    assert ordered_by(Detect(), DATA).classes == ordered_by(Detect(classes=("cat", "dog")), DATA).classes
    assert ordered_by(Detect(classes=("cat",)), NAMELESS).classes == ("cat",)
    with pytest.raises(ValueError, match=r"\('cat',\), in this order. Received: \['cat', 'dog'\]"):
        ordered_by(Detect(classes=("cat",)), DATA)


def test_classes_without_names_have_numbers():
    assert numbered(Classify(), {"num_classes": 2}) == ("0", "1")
    assert numbered(Classify(classes=("a",)), {"num_classes": None}) == ("a",)
    with pytest.raises(ValueError, match="must set model.num_classes. Received: none"):
        numbered(Classify(), {"num_classes": None})
