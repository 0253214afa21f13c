import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.models.metadata import keep
from keras_vit.models.unknown import mark, stated_unknown

RNG = np.random.default_rng(0)
RULE = {"rule": "energy", "temperature": 1.0, "threshold": -1.0, "rate": 0.05, "quantiles": [-2.0, 0.0]}


def ruled(**options):
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3, **options)
    keep(model, unknown={**RULE, "mark": mark(model)})
    return model


@pytest.mark.backend
def test_a_rule_is_of_its_weights_and_size(tmp_path):
    model = ruled()
    model.save(tmp_path / "a.keras")
    same = [keras_vit.from_pretrained(tmp_path / "a.keras"), keras.models.load_model(tmp_path / "a.keras")]
    same += [keras_vit.from_pretrained(tmp_path / "a.keras", image_size=8, stochastic_depth=0.1)]
    same += [keras.Model(model.inputs, model.outputs)]
    assert all(stated_unknown(each) == stated_unknown(model) is not None for each in same)
    trained = keras.models.load_model(tmp_path / "a.keras")
    trained.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True))
    trained.fit(RNG.integers(0, 256, (4, 8, 8, 3)).astype("float32"), np.arange(4) % 3, verbose=0)
    quantized = keras.models.load_model(tmp_path / "a.keras")
    quantized.quantize("int8")
    larger = keras_vit.vit("mu/4", image_size=16, num_classes=3)
    keras_vit.load_weights(larger, tmp_path / "a.keras")
    images = keras.Input((16, 16, 3))
    resized = keras.Model(images, model(keras.layers.Resizing(8, 8)(images)))
    for other in (trained, quantized, larger, resized):
        with pytest.warns(UserWarning, match="is left out: it is of other weights, or of another image size"):
            assert stated_unknown(other) is None


@pytest.mark.parametrize("changes", [{"image_size": 16}, {"pooling": "gap"}, {"mean": [0.1, 0.2, 0.3]}])
def test_other_logits_have_no_rule(changes, tmp_path):
    """Also where the weights stay; an encoder needs no warning."""
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    keep(model, unknown=RULE)
    model.save(tmp_path / "a.keras")
    with pytest.warns(UserWarning, match=f"rule for unknown images is left out.* Received: {next(iter(changes))}"):
        assert stated_unknown(keras_vit.from_pretrained(tmp_path / "a.keras", **changes)) is None
    assert stated_unknown(keras_vit.from_pretrained(tmp_path / "a.keras", num_classes=0)) is None
    assert stated_unknown(keras_vit.from_pretrained(tmp_path / "a.keras")) == RULE


def test_probabilities_have_lost_the_energy():
    model = ruled()
    ended = keras.Model(model.inputs, keras.layers.Softmax()(model.output))
    with pytest.warns(UserWarning, match="it needs logits, and the model gives probabilities"):
        assert stated_unknown(ended) is None


def test_no_class_is_called_as_the_answer():
    with pytest.raises(ValueError, match="No class may be called 'none of these'"):
        keras_vit.class_names(ruled(), ["a", "none of these", "c"])
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    keras_vit.class_names(model, ["a", "none of these", "c"])  # without a rule it is a class as any other
    keep(model, unknown=RULE)
    with pytest.raises(ValueError, match="No class may be called"):
        keras_vit.Classify(classes=("a", "none of these", "c")).of_model(model)
