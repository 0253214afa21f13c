import numpy as np
import pytest

from keras_vit.utils import metrics

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)


def area_by_hand(scores, labels):
    """The area between the ROC curve and a true-positive rate of 0.8, by its corners."""
    order = np.argsort(-scores, kind="stable")
    true = np.concatenate([[0], np.cumsum(labels[order])]) / labels.sum()
    false = np.concatenate([[0], np.cumsum(1 - labels[order])]) / (1 - labels).sum()
    return np.sum(np.diff(false) * np.maximum(true[1:] - 0.8, 0))


def test_partial_area_is_that_above_a_sensitivity_of_80_percent():
    labels = (RNG.random(400) < 0.1).astype(int)
    for noise in (0.0, 0.5, 2.0):
        scores = labels + noise * RNG.normal(size=400)
        logits = np.stack([-scores, scores], axis=1)
        assert metrics.partial_auc(logits, labels) == pytest.approx(area_by_hand(scores, labels), abs=2e-3)
    assert metrics.partial_auc(np.eye(2)[labels], labels) == pytest.approx(0.2)
    assert metrics.partial_auc(np.zeros((400, 2)), labels) == pytest.approx(0.02)


def test_partial_area_needs_two_classes():
    with pytest.raises(ValueError, match="must have images of both of two classes. Received: 3 classes"):
        metrics.partial_auc(np.zeros((2, 3)), np.array([0, 1]))
    with pytest.raises(ValueError, match="Received: 2 classes, images of 1"):
        metrics.partial_auc(np.zeros((2, 2)), np.array([0, 0]))


@pytest.mark.parametrize(
    "name, text",
    [("val_accuracy", "12.50%"), ("iou nucleus", "12.50%"), ("mean IoU on val", "12.50%"), ("mean_error", "0.1250")],
)
def test_scores_are_written_by_their_kind(name, text):
    assert metrics.written(name, 0.125) == text
