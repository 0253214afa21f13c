import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn.metrics as theirs
from scipy.special import expit, softmax

from keras_vit.tasks import Classify
from keras_vit.tasks.classify.scores import SCORES, Counts

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
LABEL_SCORES = {
    "accuracy": theirs.accuracy_score,
    "balanced_accuracy": theirs.balanced_accuracy_score,
    "precision": lambda *pair: theirs.precision_score(*pair, average="macro", zero_division=0),
    "recall": lambda *pair: theirs.recall_score(*pair, average="macro", zero_division=0),
    "f1": lambda *pair: theirs.f1_score(*pair, average="macro", zero_division=0),
    "weighted_f1": lambda *pair: theirs.f1_score(*pair, average="weighted", zero_division=0),
    "kappa": theirs.cohen_kappa_score,
    "quadratic_kappa": None,  # below
    "matthews": theirs.matthews_corrcoef,
}


def scored(labels, outputs, names, loss="softmax"):
    classes = tuple(map(str, range(outputs.shape[1])))
    tally = Classify(classes=classes, metrics=names, loss=loss).tally()
    for i in range(0, len(labels), 20):
        tally.add({"labels": labels[i : i + 20]}, outputs[i : i + 20])
    return tally.result()


def test_every_score_is_compared():
    assert {*LABEL_SCORES, "auc", "partial_auc", "log_loss", "top_5_accuracy"} == set(SCORES)


@pytest.mark.parametrize("classes, present", [(2, 2), (5, 5), (7, 4), (3, 1)])
def test_scores_of_labels_are_scikit_learn_s(classes, present):
    labels, outputs = RNG.integers(0, present, 90), RNG.normal(size=(90, classes))
    outputs[np.arange(90), labels] += 1
    if present == 4:
        outputs[:, 5] = -9  # a class in neither labels nor predictions; class 6 is predicted only
    found = scored(labels, outputs, tuple(LABEL_SCORES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are predicted only
        wanted = {name: function(labels, outputs.argmax(-1)) for name, function in LABEL_SCORES.items() if function}
    grades = {"labels": range(classes), "weights": "quadratic"}  # places count, also of grades that no image has
    wanted["quadratic_kappa"] = theirs.cohen_kappa_score(labels, outputs.argmax(-1), **grades)
    assert found == pytest.approx(wanted, rel=1e-12, nan_ok=True)


def test_where_all_is_one_class_kappa_is_not_defined():
    found = scored(np.zeros(9, int), np.eye(3)[np.zeros(9, int)], tuple(LABEL_SCORES))
    assert np.isnan([found.pop("kappa"), found.pop("quadratic_kappa")]).all()
    assert found.pop("matthews") == 0 and set(found.values()) == {1}


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@pytest.mark.parametrize("classes", [2, 4])
def test_auc_is_scikit_learn_s_and_sees_differences_near_one(classes, loss):
    labels, outputs = np.arange(120) % classes, RNG.normal(size=(120, classes)) * 3
    probabilities = softmax(outputs, -1) if loss == "softmax" else expit(outputs)
    each = [theirs.roc_auc_score(labels == k, probabilities[:, k]) for k in range(classes)]
    wanted = each[1] if classes == 2 else np.mean(each)
    assert scored(labels, outputs, ("auc",), loss) == {"auc": pytest.approx(wanted)}
    if loss == "softmax" and classes == 4:
        assert wanted == pytest.approx(theirs.roc_auc_score(labels, probabilities, multi_class="ovr"))
    outputs[:, 0] += 60  # its probability rounds to 1
    counted = range(classes) if classes > 2 else [1]
    exact = np.mean([theirs.roc_auc_score(labels == k, odds(outputs, k, loss)) for k in counted])
    assert scored(labels, outputs, ("auc",), loss)["auc"] == pytest.approx(exact, abs=2e-3)


def odds(outputs, k, loss):
    others = np.delete(outputs, k, -1)
    return outputs[:, k] - (np.log(np.exp(others).sum(-1)) if loss == "softmax" else 0)


def test_auc_counts_the_classes_that_have_images():
    labels, outputs = np.array([0, 0, 1, 1]), RNG.normal(size=(4, 3))
    each = [theirs.roc_auc_score(labels == k, odds(outputs, k, "softmax")) for k in (0, 1)]
    assert scored(labels, outputs, ("auc",))["auc"] == pytest.approx(np.mean(each))
    for classes, name in ((2, "auc"), (3, "auc"), (2, "partial_auc")):
        assert np.isnan(scored(np.zeros(4, int), outputs[:, :classes], (name,))[name])


def test_log_loss_and_top_5():
    labels, outputs = RNG.integers(0, 9, 60), RNG.normal(size=(60, 9)) * 2
    found = scored(labels, outputs, ("log_loss", "top_5_accuracy"))
    assert found == pytest.approx(
        {
            "log_loss": theirs.log_loss(labels, softmax(outputs, -1)),
            "top_5_accuracy": theirs.top_k_accuracy_score(labels, outputs, k=5),
        }
    )
    assert scored(labels, np.zeros((60, 9)), ("top_5_accuracy",))["top_5_accuracy"] == np.mean(labels < 5)  # ties
    assert scored(np.array([1]), np.array([[1e4, 0.0]]), ("log_loss",)) == {"log_loss": 1e4}


def test_many_classes_take_little_memory():
    """A confusion matrix of 21,841 classes would take 3.8 GB."""
    tracemalloc.start()
    counts = Counts(21841, tuple(LABEL_SCORES))
    labels = RNG.integers(0, 21841, 8)
    counts.add(labels, np.zeros((8, 21841)), labels)
    values = [SCORES[name](counts) for name in LABEL_SCORES]
    assert tracemalloc.get_traced_memory()[1] < 20e6 and values == pytest.approx([1.0] * len(values))
    tracemalloc.stop()
