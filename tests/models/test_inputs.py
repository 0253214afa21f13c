import keras
import numpy as np

import keras_vit
from keras_vit.models.inputs import count, fed, first, image_shape, inputs_of, named, table_of
from tests.towers import two_towers

PIXELS, IDS = {"shape": (4, 4, 1)}, {"shape": (8,), "dtype": "int32"}


def test_the_images_of_a_model():
    assert image_shape(keras_vit.vit("mu/4", image_size=(8, 12), channels=1)) == (8, 12, 1)
    assert image_shape(two_towers()) == (12, 8, 3)


def test_a_model_is_called_with_what_it_takes():
    examples = {"images": 1, "texts": 2, "labels": 3}
    assert fed(examples, ("images",)) == 1 and fed(examples, ("images", "texts")) == {"images": 1, "texts": 2}
    for inputs in (("images",), ("texts",), ("images", "texts")):
        assert named(fed(examples, inputs), inputs) == {name: examples[name] for name in inputs}


def test_the_first_examples():
    images, ids = np.zeros((3, 12, 8, 3)), np.zeros((3, 8))
    assert count(images) == count({"images": images, "texts": ids}) == 3 and first(images, 2).shape == (2, 12, 8, 3)
    assert [x.shape for x in first({"images": images, "texts": ids}, 2).values()] == [(2, 12, 8, 3), (2, 8)]


def test_inputs_are_known_by_their_axes_and_those_of_several_by_name():
    towers = two_towers()
    assert inputs_of(towers) == {"images": (12, 8, 3), "texts": (8,)}
    assert inputs_of(towers.get_layer("text")) == {"texts": (8,)} and table_of(towers)[1] == 12
    assert inputs_of(towers.get_layer("image")) == {"images": (12, 8, 3)}
    pixels = keras.Input((4, 4, 1), name="pixels")
    assert inputs_of(keras.Sequential([pixels, keras.layers.Flatten()])) == {"images": (4, 4, 1)}
    for names, found in (
        ("images texts", {"images": (4, 4, 1), "texts": (8,)}),
        ("a texts", {}),
        ("texts images", {}),
    ):
        given = {name: keras.Input(**x, name=name) for name, x in zip(names.split(), (PIXELS, IDS))}
        pixels, ids = given.values()
        total = keras.ops.sum(pixels, axis=(1, 2)) + keras.ops.cast(ids, "float32")
        assert inputs_of(keras.Model(given, total)) == found
        assert inputs_of(keras.Model([pixels, ids], total)) == {}
    for other in (keras.Input((8,)), keras.Input((None, 4, 3)), keras.Input((8, 3))):
        assert inputs_of(keras.Model(other, other * 2)) == {}
    assert inputs_of(keras.layers.Dense(3)) == inputs_of(None) == {} and table_of(keras.layers.Dense(3)) == (None, 0)
