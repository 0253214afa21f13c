"""Names of classes in a model's metadata."""

import keras
import numpy as np
import pytest

from keras_vit import PatchEncoder, Patches, TokenPool, preprocess, vit
from keras_vit.models.metadata import class_names, keep, metadata, stated_labels

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


def by_hand(rescale=()):
    x = inputs = keras.Input((8, 8, 3))
    for layer in (*rescale, Patches(4), PatchEncoder(8), TokenPool(), keras.layers.Dense(2)):
        x = layer(x)
    return keras.Model(inputs, x, name="mine")


@pytest.mark.parametrize("rescale", [(), (keras.layers.Rescaling(1 / 255),)])
def test_names_are_kept_without_a_layer_that_rescales(rescale, tmp_path):
    model = by_hand(rescale)
    with pytest.raises(ValueError, match="'mine' has no class names"):
        class_names(model)
    assert class_names(model, ["cat", "dog"]) == stated_labels(model) == ("cat", "dog")
    model.save(tmp_path / "model.keras")
    copies = keras.models.load_model(tmp_path / "model.keras"), keras.models.clone_model(model)
    assert [class_names(copy) for copy in copies] == [("cat", "dog")] * 2
    keep(model, ["labels"], note=[1, 2])
    assert metadata(model) == {"note": [1, 2]}


def test_the_reason_is_the_true_one():
    for names in (["cat"], [1, 2]):
        with pytest.raises(ValueError, match="`names` must be a string for each of 2 classes"):
            class_names(by_hand(), names)
    plain = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="plain")
    with pytest.raises(ValueError, match="kept by a layer of keras_vit, such as `Rescale`.*'plain' without"):
        class_names(plain, ["cat", "dog"])
    keep(plain, note=1)
    assert metadata(plain) == {}
