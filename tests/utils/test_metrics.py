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
    [
        ("val_accuracy", "12.50%"),
        ("iou nucleus", "12.50%"),
        ("mean IoU on val", "12.50%"),
        ("mean_error", "0.1250"),
        ("text to image R@1", "12.50%"),
        ("val_image_to_text_recall_at_5", "12.50%"),
        ("image_to_text_chance_at_1", "12.50%"),
        ("exact_match", "12.50%"),
        ("character error rate in other fonts", "12.50%"),
        ("delta1", "12.50%"),
        ("abs_rel", "0.1250"),
        ("ap top-1 seats", "0.1250"),  # of a class with such a name
        ("ap50 iou", "0.1250"),
        ("pq iou", "0.1250"),
        ("mae_accuracy", "0.1250"),  # of a number with such a name
    ],
)
def test_scores_are_written_by_their_kind(name, text):
    assert metrics.written(name, 0.125) == text


@pytest.mark.parametrize(
    "name, words",
    [
        ("mae_ink_percent", "mean error of ink, in percent"),
        ("mae_ink (%)", "mean error of ink, in percent"),
        ("rmse_age [years]", "root mean squared error of age, in years"),
        ("mae_width in mm", "mean error of width, in mm"),
        ("r2_age_years", "R2 of age"),
        ("mae_left_angle", "mean error of left angle"),
        ("map", "mAP"),
        ("ap zero", "average precision of zero"),
        ("ap50 RBC", "AP50 of RBC"),
        ("iou car door", "IoU of car door"),
        ("mask_ap50", "mask AP50"),
        ("pq", "panoptic quality"),
        ("pq stuff", "panoptic quality of stuff"),
        ("text_to_image_recall_at_5", "recall at 5, text to image"),
        ("image_to_text_chance_at_1", "chance of recall at 1, image to text"),
        ("psnr", "PSNR, in dB"),
        ("input_psnr x2+jpeg40", "PSNR of the input of x2+jpeg40, in dB"),
        ("top_5_accuracy", "top-5 accuracy"),
        ("my_own_score", "my own score"),
    ],
)
def test_scores_have_words_and_units(name, words):
    assert metrics.worded(metrics.titled(name)) == words


def test_a_score_is_told_with_its_unit():
    assert metrics.told(metrics.titled("psnr"), "30.5") == "PSNR 30.5 dB"
    assert metrics.told(metrics.titled("accuracy"), "97%") == "accuracy 97%"
