import warnings

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.utils.losses import end_of, from_logits, untrainable

pytestmark = pytest.mark.backend

SPARSE = "sparse_categorical_crossentropy"
SAID = "returns logits, and the loss '{}' takes probabilities.*{}"


def small(num_classes=3):
    return keras_vit.vit("mu/4", image_size=8, depth=1, num_classes=num_classes, name="small")


def by_hand(*end):
    x = inputs = keras.Input((8, 8, 3))
    x = keras_vit.PatchEncoder(8)(keras_vit.Patches(4)(keras_vit.Rescale()(x)))
    x = keras_vit.TokenPool()(x)
    for layer in (keras.layers.Dense(3), *end):
        x = layer(x)
    return keras.Model(inputs, x, name="mine")


@pytest.mark.parametrize(
    "loss, kind",
    [
        (SPARSE, "SparseCategoricalCrossentropy"),
        ("categorical_crossentropy", "CategoricalCrossentropy"),
        ("binary_crossentropy", "BinaryCrossentropy"),
        (keras.losses.SparseCategoricalCrossentropy(), "SparseCategoricalCrossentropy"),
        (keras.losses.BinaryFocalCrossentropy(), "BinaryFocalCrossentropy"),
    ],
)
def test_a_model_says_in_compile_that_its_loss_takes_probabilities(loss, kind):
    name = loss if isinstance(loss, str) else loss.name
    with pytest.warns(UserWarning, match=SAID.format(name, rf"keras.losses.{kind}\(from_logits=True\)")):
        small().compile("adam", loss)


@pytest.mark.parametrize("loss", [None, "mse", "hinge", keras.losses.SparseCategoricalCrossentropy(from_logits=True)])
def test_nothing_is_said_of_other_losses(loss):
    with warnings.catch_warnings(action="error"):
        small().compile("adam", loss)
        small(0).compile("adam", SPARSE)
        keras.Sequential([small(), keras.layers.Softmax()]).compile("adam", SPARSE)


def test_a_model_of_keras_says_it_in_its_first_step():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("only there Keras tells which model is trained")
    images, labels = np.zeros((2, 8, 8, 3), "uint8"), np.array([0, 1])
    for model in (by_hand(), keras.Sequential([keras.Input((8, 8, 3)), by_hand()], name="mine")):
        model.compile("adam", SPARSE, run_eagerly=True)
        with pytest.warns(UserWarning, match="'mine' " + SAID.format(SPARSE, "from_logits=True")):
            model.train_on_batch(images, labels)
    for end in (keras.layers.Softmax(), keras.layers.Activation("softmax"), lambda x: keras.ops.softmax(x)):
        model = by_hand(end)
        model.compile("adam", SPARSE, run_eagerly=True)
        with warnings.catch_warnings(action="error"):
            model.train_on_batch(images, labels)


def test_the_parts():
    assert end_of(by_hand()) is None and end_of(by_hand(keras.layers.Softmax())) == "softmax"
    assert end_of(by_hand(lambda x: keras.ops.sigmoid(x))) == "sigmoid"
    assert from_logits(keras.losses.get(SPARSE)) is False and from_logits(keras.losses.get("mse")) is None
    assert untrainable(by_hand()) is None  # not compiled
