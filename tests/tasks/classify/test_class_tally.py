import re
import tracemalloc

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import balanced_accuracy_score

from keras_vit import explain
from keras_vit.tasks import Classify
from keras_vit.utils import metrics

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
LOGITS, LABELS = RNG.normal(size=(50, 2)), RNG.integers(0, 2, 50)
EVERY = ("accuracy", "balanced_accuracy", "partial_auc")


def tallied(keep=False, **settings):
    tally = Classify(classes=("a", "b"), **settings).tally(keep)
    scores = [tally.add({"labels": LABELS[i : i + 20]}, LOGITS[i : i + 20]) for i in range(0, 50, 20)]
    return tally, np.concatenate(scores)


def test_scores_are_those_of_all_images_at_once():
    tally, _ = tallied(metrics=EVERY)
    predictions = LOGITS.argmax(-1)
    assert tally.result() == {
        "accuracy": pytest.approx(np.mean(predictions == LABELS)),
        "balanced_accuracy": pytest.approx(balanced_accuracy_score(LABELS, predictions)),
        "partial_auc": pytest.approx(metrics.partial_auc(LOGITS, LABELS)),
    }


def test_a_class_without_images_does_not_count():
    tally = Classify(classes=tuple("abc"), metrics=("accuracy", "balanced_accuracy")).tally()
    tally.add({"labels": np.array([0, 0, 0, 2])}, np.eye(3)[[0, 0, 1, 2]])
    assert tally.result() == {"accuracy": 3 / 4, "balanced_accuracy": pytest.approx((2 / 3 + 1) / 2)}


def test_mistakes_have_the_lowest_scores():
    _, scores = tallied()
    wrong = LOGITS.argmax(-1) != LABELS
    assert (scores[wrong] < 0).all() and (scores[~wrong] >= 0.5).all()
    worst = explain.worst(LABELS, softmax(LOGITS, -1), 5)
    assert np.argsort(scores, kind="stable")[:5].tolist() == worst.tolist()


def test_figures_are_of_every_image():
    tally, _ = tallied(keep=True)
    matrix, calibration, per_class, curves = tally.figures()
    mistakes = int((LOGITS.argmax(-1) != LABELS).sum())
    assert sum(int(text) for text in re.findall(r"\((\d+)\)", matrix)) == mistakes
    error = explain.calibration(LABELS, softmax(LOGITS, -1)).error
    assert f"{error:.2%}" in calibration and tally.result()["calibration_error"] == error
    assert per_class.startswith("Precision and recall") and "all thresholds" in curves


def test_a_sigmoid_gives_each_class_its_own_probability():
    tally, scores = tallied(keep=True, loss="sigmoid")
    sure, right = 1 / (1 + np.exp(-LOGITS.max(-1))), LOGITS.argmax(-1) == LABELS
    np.testing.assert_allclose(scores[right], sure[right])
    places = np.ceil(sure * 15).astype(int)
    gaps = [abs(right[places == i].sum() - sure[places == i].sum()) for i in range(16)]
    assert tally.result()["calibration_error"] == pytest.approx(sum(gaps) / 50) and len(tally.figures()) == 4
    task = Classify(classes=("crane", "crane"), loss="sigmoid")
    assert task.answer([-1.0, 2.0]) == pytest.approx({"crane (1)": 0.880797, "crane (0)": 0.268941}, rel=1e-5)
    assert task.caption(np.array([-1.0, 2.0]), {"labels": 0}) == "crane (0), predicted crane (1) (88%)"


def test_figures_of_many_classes_need_no_memory_for_all_pairs():
    classes, images, rng = 21_843, 60, np.random.default_rng(0)
    task = Classify(classes=tuple(f"class {i // 2}" for i in range(classes)), metrics=("accuracy", "f1", "kappa"))
    labels, logits = rng.integers(0, classes, images), rng.normal(size=(images, classes))
    logits[np.arange(images), np.minimum(labels + 1, classes - 1)] = 20
    tracemalloc.start()
    try:
        tally = task.tally(keep=True)
        tally.add({"labels": labels}, logits)
        tally.result()
        confusions, *_ = tally.figures().items()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < classes**2 / 4  # a matrix of bytes would take four times as much
    caption, figure = confusions
    assert caption.startswith("Most frequent confusions") and len(figure.axes[0].patches) == 40
    assert all(" → " in label.get_text() for label in figure.axes[0].get_yticklabels())
