import keras
import numpy as np
import pytest

from keras_vit.tasks.losses import ClassLoss

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
