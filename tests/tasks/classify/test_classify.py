from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.tasks import Classify
from keras_vit.tasks.classify.classify import ClassLoss

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(6, 5)).astype("float32") * 3
LABELS = RNG.dirichlet(np.ones(5), 6).astype("float32")  # as after MixUp


def loss(*settings, **more):
    made = ClassLoss(*settings, **more)
    again = keras.losses.deserialize(keras.losses.serialize(made))
    value = float(made(LABELS, LOGITS))
    assert value == float(again(LABELS, LOGITS))
    return value


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax_is_keras_own(smoothing):
    theirs = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=smoothing)
    assert loss("softmax", smoothing) == pytest.approx(float(theirs(LABELS, LOGITS)), rel=1e-5)


def test_sigmoid_is_the_sum_over_classes():
    theirs = keras.losses.BinaryCrossentropy(from_logits=True)
    assert loss("sigmoid") == pytest.approx(5 * float(theirs(LABELS, LOGITS)), rel=1e-5)


def test_a_class_counts_by_its_weight():
    weights = [1.0, 2.0, 0.5, 1.0, 3.0]
    each = -(LABELS * np.log(np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True))).sum(-1)
    assert loss(class_weights=weights) == pytest.approx(np.mean(each * (LABELS @ weights)), rel=1e-5)


def test_large_logits_stay_finite():
    huge = np.array([[1e4, -1e4]], "float32")
    for kind in ("softmax", "sigmoid"):
        assert np.isfinite(float(ClassLoss(kind)(np.array([[0.0, 1.0]]), huge)))


class Counted(SimpleNamespace):
    def __len__(self):
        return len(self.labels)


def test_rare_classes_count_more():
    data = Counted(labels=np.array([0] * 30 + [1] * 9 + [2]), class_names=tuple("abc"))
    weights = Classify(class_weights=True).compiled(data)["loss"].class_weights
    np.testing.assert_allclose(weights, [40 / 90, 40 / 27, 40 / 3])
    assert np.mean(np.array(weights)[data.labels]) == pytest.approx(1)
    assert Classify().compiled(data)["loss"].class_weights is None


def test_a_sigmoid_starts_where_its_bias_says():
    model = vit("mu/4", image_size=8, num_classes=3)
    task = Classify(loss="sigmoid", head_bias=-2.0)
    assert task.learner(model) is model
    logits = model(np.zeros((2, 8, 8, 3)))
    value = float(task.compiled(None)["loss"](np.eye(3)[:2], logits))
    assert value == pytest.approx(2 * np.log1p(np.exp(-2)) + np.log1p(np.exp(2)), rel=1e-5)
    model.get_layer("head").bias.assign([0.0, 1.0, 2.0])  # as of weights that were trained
    task.learner(model)
    np.testing.assert_array_equal(model.get_layer("head").bias, [0, 1, 2])


def test_classes_are_the_data_s_and_must_be_the_model_s():
    data = Counted(labels=np.array([0, 1]), class_names=("cat", "dog"), check_labels=lambda: None)
    task = Classify().on(data, {"num_classes": 2})
    assert task.classes == ("cat", "dog") and task.classes_for({"num_classes": 5}) == ("cat", "dog")
    assert Classify().classes_for({"num_classes": 2}) == ("0", "1")
    with pytest.raises(ValueError, match=r"must be the data's, \('cat', 'dog'\). Received: \('dog', 'cat'\)"):
        Classify(classes=("dog", "cat")).on(data)
    with pytest.raises(ValueError, match="as many classes as the data, 2. Received: 3 classes"):
        Classify().on(data, {"num_classes": 3})
    assert list(task.answer(np.array([0.0, 1.0]))) == ["dog", "cat"]
    assert task.caption(np.array([0.0, 9.0]), {"labels": 0}) == "cat, predicted dog (100%)"
    assert task.caption(np.array([9.0, 0.0]), {"labels": 0}) == "cat (100%)"


def test_a_classifier_returns_a_vector():
    with pytest.raises(ValueError, match=r"one vector of logits per image. Received: output shape \(None, 5, 2\)"):
        Classify().model(variant="mu/4", image_size=8, num_classes=2, pooling="none", tokens={"class_token": True})


def test_answers_are_of_the_loss_and_of_every_class():
    """One sigmoid for each class does not sum to one; of two classes of one name both remain."""
    output = np.log([0.7 / 0.3, 0.2 / 0.8, 0.4 / 0.6])
    task = Classify(loss="sigmoid", classes=("crane", "owl", "crane"))
    assert task.answer(output) == pytest.approx({"crane (0)": 0.7, "crane (2)": 0.4, "owl": 0.2})
    assert task.caption(output, {"labels": 2}) == "crane (2), predicted crane (0) (70%)"
    tally = task.tally(keep=True)
    tally.add({"labels": np.array([0])}, output[None])
    assert tally.result()["calibration_error"] == pytest.approx(0.3)
    assert sum(Classify(classes=tuple("abc")).answer(output).values()) == pytest.approx(1)
