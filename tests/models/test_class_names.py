"""Names of classes in a model's metadata."""

import keras
import numpy as np
import pytest

from keras_vit import preprocess, vit
from keras_vit.models.preprocessing import class_names, stated_labels

pytestmark = pytest.mark.backend


def test_names_of_classes_may_be_an_array():
    model = vit("mu/4", image_size=8, num_classes=2)
    model.get_layer("rescale").metadata["labels"] = np.array(["cat", "dog"])
    assert stated_labels(model) == ("cat", "dog")
    assert preprocess(model, np.zeros((9, 9, 3), "uint8")).shape == (1, 8, 8, 3)


def test_class_names_are_read_and_stored_by_one_function():
    model = vit("mu/4", image_size=8, num_classes=2)
    with pytest.raises(ValueError, match="has no class names. Store them"):
        class_names(model)
    outer = keras.Sequential([keras.Input((8, 8, 3)), model])
    assert class_names(outer, np.array(["cat", "dog"])) == class_names(outer) == class_names(model) == ("cat", "dog")
    for names in (["cat"], [1, 2], "ab", 2):
        with pytest.raises(ValueError, match="`names` must be a string for each of 2 classes. Received: "):
            class_names(model, names)
    with pytest.raises(ValueError, match="A class name must be one line"):
        class_names(model, ["a\nb", "c"])
