import keras
import numpy as np
import pytest

from keras_vit.tasks.classify.several_loss import SeveralLoss, positive_weights

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(6, 5)).astype("float32") * 3
LABELS = RNG.integers(0, 2, (6, 5)).astype("float32")


def loss(*settings, labels=LABELS, **more):
    made = SeveralLoss(*settings, **more)
    again = keras.losses.deserialize(keras.losses.serialize(made))
    value = float(made(labels, LOGITS))
    assert value == float(again(labels, LOGITS))
    return value


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_it_is_the_sum_of_keras_own(smoothing):
    theirs = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=smoothing)  # 1 - s / 2 and s / 2
    assert loss("sigmoid", smoothing) == pytest.approx(5 * float(theirs(LABELS, LOGITS)), rel=1e-5)


@pytest.mark.parametrize("kind", ["sigmoid", "asymmetric"])
def test_unknown_labels_add_nothing_and_have_no_gradient(kind):
    unknown = LABELS.copy()
    unknown[:, 2] = -1
    alone = SeveralLoss(kind, 0.1)(np.delete(LABELS, 2, 1), np.delete(LOGITS, 2, 1))
    assert loss(kind, 0.1, labels=unknown) == pytest.approx(float(alone), rel=1e-6)
    assert loss(kind, labels=0 * LABELS - 1) == 0


def test_the_asymmetric_loss_is_the_papers():
    """Equations 4 to 7 of arXiv:2009.14119, also for labels that are blended."""
    p = 1 / (1 + np.exp(-LOGITS.astype("float64")))
    shifted = np.maximum(p - 0.05, 0)
    for labels in (LABELS, LABELS * 0.7):
        each = labels * np.log(p) + (1 - labels) * shifted**4 * np.log(1 - shifted)
        assert loss("asymmetric", labels=labels) == pytest.approx(-each.sum(-1).mean(), rel=1e-5)


def test_positives_count_by_the_weight_of_their_class():
    labels = np.array([[1, 1, 0, 1]] + [[0, 1, 0, 1]] + [[0, -1, 0, 1]] * 28, "int8")
    np.testing.assert_allclose(positive_weights(labels), [10, 1, 1, 1])
    np.testing.assert_allclose(positive_weights(np.array([[1, 1], [0, 1], [0, 0], [-1, 1]])), [2, 1 / 3])
    weights = [1.0, 2.0, 0.5, 1.0, 3.0]
    each = LABELS * np.log1p(np.exp(-LOGITS)) * weights + (1 - LABELS) * np.log1p(np.exp(LOGITS))
    assert loss(weights=weights) == pytest.approx(each.sum(-1).mean(), rel=1e-5)


def test_large_logits_stay_finite():
    for kind in ("sigmoid", "asymmetric"):
        huge = np.array([[1e4, -1e4, 1e4, -1e4]], "float32")
        assert np.isfinite(float(SeveralLoss(kind)(np.array([[0.0, 1.0, 1.0, 0.0]]), huge)))
