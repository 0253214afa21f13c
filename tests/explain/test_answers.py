import numpy as np
import pytest

from keras_vit.explain import calibration, per_class, worst
from keras_vit.explain.answers import confusion

LABELS = np.array([0, 0, 1, 1, 1, 0])
SURE = np.array([0.95, 0.85, 0.65, 0.85, 0.55, 0.65])  # of the answer
ANSWERS = np.array([0, 0, 1, 0, 0, 1])
PROBABILITIES = np.zeros((6, 3))
PROBABILITIES[np.arange(6), ANSWERS] = SURE
PROBABILITIES[np.arange(6), 1 - ANSWERS] = 1 - SURE


def test_precision_and_recall_by_hand():
    found = per_class(LABELS, PROBABILITIES)
    np.testing.assert_allclose(found["recall"], [2 / 3, 1 / 3, np.nan])
    np.testing.assert_allclose(found["precision"], [2 / 4, 1 / 2, np.nan])
    np.testing.assert_array_equal(found["support"], [3, 3, 0])
    assert per_class([1], [[1.0, 0.0]])["support"].dtype.kind == "i"


def test_confusion_by_hand():
    images, shares = confusion(LABELS, ANSWERS, 3)
    np.testing.assert_array_equal(images, [[2, 1, 0], [2, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3, 0], [2 / 3, 1 / 3, 0], [0, 0, 0]])


def test_calibration_by_hand():
    found = calibration(LABELS, PROBABILITIES, bins=10)
    np.testing.assert_array_equal(found.count, [0, 0, 0, 0, 0, 1, 2, 0, 2, 1])
    np.testing.assert_allclose(found.accuracy[[5, 6, 8, 9]], [0, 0.5, 0.5, 1])
    np.testing.assert_allclose(found.confidence[[5, 6, 8, 9]], [0.55, 0.65, 0.85, 0.95])
    assert np.isnan(found.accuracy[0]) and np.isnan(found.confidence[7])
    assert found.error == pytest.approx((1 * 0.55 + 2 * 0.15 + 2 * 0.35 + 1 * 0.05) / 6)


def test_answers_that_are_as_often_right_as_sure_have_no_error():
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 200_000)
    right = rng.random(len(sure)) < sure
    found = calibration(np.where(right, 0, 1), np.stack([sure, 1 - sure], 1))
    assert found.error < 0.005
    every = calibration([0, 1], [[1.0, 0.0], [1.0, 0.0]])
    assert every.count[-1] == 2 and every.error == 0.5  # certainty falls into the last bin


def test_the_worst_mistakes_come_first():
    assert worst(LABELS, PROBABILITIES).tolist() == [3, 5, 4]
    assert worst(LABELS, PROBABILITIES, 1).tolist() == [3]
    assert worst(LABELS, np.log(PROBABILITIES + 1e-9)).tolist() == [3, 5, 4]
    assert len(worst(ANSWERS, PROBABILITIES)) == 0


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"softmax\(logits\)\. Received: values from -5"):
        calibration([0, 1], [[3.0, -5.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="6 images and 2 labels"):
        per_class([0, 1], PROBABILITIES)
    with pytest.raises(ValueError, match=r"shape=\(6,\)"):
        worst(LABELS, SURE)
    with pytest.raises(ValueError, match=r"shape=\(1, 2\), not finite"):
        worst([0], [[np.nan, 1.0]])


def test_one_column_is_of_the_second_of_two_classes_or_refused():
    positive = PROBABILITIES[:, 1:2] / PROBABILITIES[:, :2].sum(1, keepdims=True)
    found, both = calibration(LABELS, positive), calibration(LABELS, np.hstack([1 - positive, positive]))
    assert found.error == both.error and found.count.tolist() == both.count.tolist()
    for metric in (per_class, worst):  # logits or probabilities: not known
        with pytest.raises(ValueError, match=r"must have a column for each class.*np.hstack\(\[0 \* z, z\]\)"):
            metric(LABELS, positive)
