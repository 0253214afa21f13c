"""Names of classes in a model's metadata."""

import keras
import numpy as np
import pytest

from keras_vit import PatchEncoder, Patches, TokenPool, preprocess, vit
from keras_vit.config import Segment
from keras_vit.models.kinds import name_of
from keras_vit.models.metadata import class_names, keep, metadata, stated_labels
from tests.small import Around

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


def test_names_are_not_those_of_a_new_head(tmp_path):
    old = vit("mu/4", image_size=8, num_classes=2)
    old.get_layer("rescale").metadata |= {"labels": ["cat", "dog"], "evaluation": {"resize": 9}}
    features = keras.Model(old.input, old.get_layer("pool").output)
    new = keras.Model(old.input, keras.layers.Dense(2, name="fresh")(features.output))
    nested = keras.Sequential([features, keras.layers.Dense(2, name="fresh")])
    with_softmax = keras.Sequential([old, keras.layers.Softmax()])
    for model, names in ((old, ("cat", "dog")), (with_softmax, ("cat", "dog")), (new, None), (nested, None)):
        model.save(tmp_path / "model.keras")
        for each in (model, keras.models.load_model(tmp_path / "model.keras"), keras.models.clone_model(model)):
            assert stated_labels(each) == names
            assert metadata(each)["evaluation"] == {"resize": 9}


def test_models_with_a_shared_layer_keep_their_own_names(tmp_path):
    shared = by_hand()
    start, tokens = shared.input, shared.layers[-2].output
    heads = [keras.layers.Dense(count, name=name) for count, name in ((2, "pets"), (2, "colors"), (3, "sizes"))]
    models = [keras.Model(start, head(tokens)) for head in heads]
    names = [("cat", "dog"), ("red", "blue"), ("s", "m", "l")]
    for model, each in zip(models, names):
        class_names(model, each)
    assert [class_names(model) for model in models] == names
    class_names(models[0], ("dog", "cat"))
    assert [class_names(model) for model in models] == [("dog", "cat"), *names[1:]]
    models[1].save(tmp_path / "model.keras")
    assert class_names(keras.models.load_model(tmp_path / "model.keras")) == ("red", "blue")
    with pytest.raises(ValueError, match="has no class names"):
        class_names(shared)


def test_names_are_kept_where_the_outputs_cannot_be_followed():
    inner = vit("mu/4", image_size=8, num_classes=2)
    class_names(inner, ["cat", "dog"])
    assert metadata(Around(inner))["labels"] == ["cat", "dog"]


def test_a_new_head_of_the_same_name_has_no_names(tmp_path):
    """Keras counts its own names anew in each program: both heads can be called "dense"."""
    made = by_hand()
    head = keras.layers.Dense(2, name="dense")
    class_names(keras.Model(made.input, head(made.layers[-2].output)), ["cat", "dog"])
    keras.Model(made.input, head.output).save(tmp_path / "model.keras")
    old = keras.models.load_model(tmp_path / "model.keras")
    features = keras.Model(old.input, old.layers[-2].output)
    heads = [
        keras.Model(old.input, keras.layers.Dense(2, name="dense")(old.layers[-2].output)),
        keras.Sequential([features, keras.layers.Dense(2, name="dense")]),
    ]
    for new in heads:
        with pytest.warns(UserWarning, match="they are of another head than 'another dense'"):
            assert stated_labels(new) is None
    assert class_names(old) == ("cat", "dog")
    assert class_names(heads[1], ["red", "blue"]) == ("red", "blue")
    heads[1].save(tmp_path / "new.keras")
    assert class_names(keras.models.load_model(tmp_path / "new.keras")) == ("red", "blue")


def test_names_do_not_follow_outputs_in_another_order():
    model = by_hand()
    class_names(model, ["cat", "dog"])
    for ends in (lambda x: x[:, ::-1], lambda x: keras.ops.take(x, [1, 0], -1)):
        with pytest.warns(UserWarning, match="of another head"):
            assert stated_labels(keras.Model(model.input, ends(model.output))) is None
    for ends in (keras.layers.Softmax(), keras.ops.sigmoid, lambda x: x / 2):
        assert stated_labels(keras.Model(model.input, ends(model.output))) == ("cat", "dog")


def test_one_logit_has_two_names():
    x = inputs = keras.Input((8, 8, 3))
    for layer in (Patches(4), PatchEncoder(8), TokenPool(), keras.layers.Dense(1)):
        x = layer(x)
    model = keras.Model(inputs, x)
    with pytest.raises(ValueError, match="a string for each of 2 classes"):
        class_names(model, ["dog"])
    assert class_names(model, ["cat", "dog"]) == stated_labels(model, 2) == ("cat", "dog")


def test_what_outputs_are_follows_from_the_loss_and_stays(tmp_path):
    model = by_hand()
    assert name_of(model) == "classes"
    model.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
    assert name_of(model) == "labels"
    class_names(model, ["cat", "dog"])
    model.save(tmp_path / "model.keras")
    for compile in (True, False):
        assert name_of(keras.models.load_model(tmp_path / "model.keras", compile=compile)) == "labels"
    for loss in ("mse", "mae", keras.losses.Huber(), "mean_squared_error", keras.losses.mean_absolute_error):
        fresh = by_hand()
        fresh.compile("sgd", loss)
        assert name_of(fresh) == "numbers"
    for loss in ("sparse_categorical_crossentropy", keras.losses.CategoricalCrossentropy(from_logits=True)):
        fresh.compile("sgd", loss)
        assert name_of(fresh) == "classes"


def test_names_stay_where_maps_of_classes_are_resized():
    inputs = keras.Input((8, 8, 3))
    x = PatchEncoder(8, class_token=False)(Patches(4)(inputs))
    x = keras.layers.Dense(2, name="head")(keras.layers.Reshape((2, 2, 8))(x))
    model = keras.Model(inputs, keras.layers.Resizing(8, 8)(x))
    assert class_names(model, ["cat", "dog"]) == stated_labels(model)
    segmenter = Segment(classes=("cat", "dog")).model(variant="mu/4", image_size=8, num_classes=2)
    segmenter.get_layer("rescale").metadata["labels"] = ["cat", "dog"]  # as `fit` does
    assert class_names(segmenter) == ("cat", "dog")
