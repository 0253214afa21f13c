import numpy as np
import pytest

from keras_vit.tasks.classify.several_tally import SeveralTally, measures

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, (60, 4)).astype("int8")
LOGITS = (RNG.normal(size=(60, 4)) + LABELS).astype("float32")
NAMES = ("a", "b", "c", "d")


def filled(labels=LABELS, logits=LOGITS, thresholds=(0.5,) * 4):
    tally = SeveralTally(NAMES, thresholds)
    parts = [tally.add({"multilabels": labels[part]}, logits[part]) for part in (slice(25), slice(25, None))]
    return tally, np.concatenate(parts)


def test_scores_are_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    scores = filled()[0].result()
    assert list(scores) == ["map", "macro_f1", "micro_f1", "ap a", "ap b", "ap c", "ap d"]
    assert scores["map"] == pytest.approx(metrics.average_precision_score(LABELS, LOGITS, average="macro"))
    for kind in ("macro", "micro"):
        assert scores[f"{kind}_f1"] == pytest.approx(metrics.f1_score(LABELS, LOGITS >= 0, average=kind))
    assert scores["ap b"] == pytest.approx(metrics.average_precision_score(LABELS[:, 1], LOGITS[:, 1]))


def test_unknown_labels_and_classes_without_a_positive_are_left_out():
    metrics = pytest.importorskip("sklearn.metrics")
    labels = LABELS.copy()
    labels[:30, 0], labels[:, 3] = -1, 0
    tally, ranks = filled(labels)
    scores = tally.result()
    assert scores["ap a"] == pytest.approx(metrics.average_precision_score(LABELS[30:, 0], LOGITS[30:, 0]))
    assert np.isnan(scores["ap d"])
    assert scores["map"] == pytest.approx(np.mean([scores[f"ap {name}"] for name in "abc"]))
    assert scores["macro_f1"] == pytest.approx(
        np.mean([metrics.f1_score(LABELS[30 * (i == 0) :, i], LOGITS[30 * (i == 0) :, i] >= 0) for i in range(3)])
    )
    shares = 1 / (1 + np.exp(-LOGITS[40].astype("float64")))
    assert ranks[40] == pytest.approx(np.where(labels[40] == 1, shares, 1 - shares).mean())
    assert (ranks >= 0).all() and filled(0 * LABELS - 1)[1].tolist() == [0] * 60


def test_a_threshold_has_the_highest_f1_of_its_class():
    metrics = pytest.importorskip("sklearn.metrics")
    tally, _ = filled(thresholds=None)
    shares = 1 / (1 + np.exp(-LOGITS.astype("float64")))
    for i, threshold in enumerate(tally.thresholds):
        best = max(metrics.f1_score(LABELS[:, i], shares[:, i] >= t) for t in shares[:, i])
        assert metrics.f1_score(LABELS[:, i], shares[:, i] >= threshold) == pytest.approx(best)
        assert threshold not in shares[:, i]  # between two images: an export's rounding turns none
    again = filled(thresholds=tally.thresholds)[0].result()
    assert again == tally.result()
    for labels, expected in (([0, 1], (1, 0.3)), ([1, 0], (0.5, 0.1)), ([1, 1], (1, 0.5)), ([0, 0], (np.nan, 0.5))):
        assert measures(np.array(labels, bool), np.array([0.2, 0.4])) == pytest.approx(expected, nan_ok=True)


def test_figures_draw_classes_with_a_positive():
    labels = LABELS.copy()
    labels[:, 3] = 0
    figures = filled(labels)[0].figures()
    (bars, curves) = figures.values()
    assert "without a positive image, which have none: 1." in next(iter(figures))
    names = [text.get_text().split(" ")[0] for text in bars.axes[0].get_yticklabels()]
    assert sorted(names) == ["a", "b", "c"]
    drawn = [text.get_text().split(" ")[0] for text in curves.axes[1].get_legend().get_texts()]
    assert sorted(drawn) == ["a", "b", "c"]
