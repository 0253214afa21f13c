import keras
import numpy as np
import pytest
from scipy.special import expit

from keras_vit.tasks.segment.sentence_masks import MaskIoU, MaskLoss, MaskTally, OverallIoU, found_in

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
TRUTH = RNG.choice([0, 1, 7, 255], (3, 6, 5, 1), p=[0.5, 0.3, 0.1, 0.1]).astype("uint8")
LOGITS = RNG.normal(0, 2, (3, 6, 5, 1)).astype("float32")
TRUTH[2] = 0  # nothing is meant in the third image


def by_hand(threshold=0.5):
    """Returns the pixels of intersection and union of each image."""
    found, valid = expit(LOGITS) > threshold, TRUTH <= 1
    both = ((TRUTH == 1) & found & valid).sum((1, 2, 3))
    return both, (((TRUTH == 1) | found) & valid).sum((1, 2, 3))


@pytest.mark.parametrize("dice", [0.0, 0.25])
def test_loss_is_the_mean_over_pixels_that_count(dice):
    loss = np.asarray(MaskLoss(dice, reduction=None)(TRUTH, LOGITS))
    for truth, logits, found in zip(TRUTH, LOGITS, loss):
        valid, share = truth <= 1, expit(logits)
        entropy = -np.where(truth == 1, np.log(share), np.log(1 - share))[valid].mean()
        both, either = (share * (truth == 1))[valid].sum(), (share + (truth == 1))[valid].sum()
        assert found == pytest.approx((1 - dice) * entropy + dice * (1 - (2 * both + 1) / (either + 1)), abs=1e-5)
    changed = np.where(TRUTH > 1, 60, LOGITS).astype("float32")
    np.testing.assert_allclose(np.asarray(MaskLoss(dice, reduction=None)(TRUTH, changed)), loss, atol=1e-6)
    void = np.full_like(TRUTH[:1], 255)
    assert np.isfinite(np.asarray(MaskLoss(dice)(void, LOGITS[:1])))
    assert MaskLoss.from_config(MaskLoss(dice).get_config()).dice == dice


def test_loss_of_large_logits_is_finite():
    loss = MaskLoss(0.5)(np.array([0, 1], "uint8").reshape(1, 2, 1, 1), np.float32([[[[1e4]], [[-1e4]]]]))
    assert np.isfinite(float(loss)) and float(loss) > 1e3


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_scores_are_those_by_hand(threshold):
    both, either = by_hand(threshold)
    each = np.where(either, both / np.maximum(either, 1), 1.0)
    mean, overall, tally = MaskIoU(threshold), OverallIoU(threshold), MaskTally(threshold)
    for some in (slice(2), slice(2, 3)):
        mean.update_state(TRUTH[some], LOGITS[some])
        overall.update_state(TRUTH[some], LOGITS[some])
        scores = tally.add({"segmentation_masks": TRUTH[some]}, LOGITS[some])
        np.testing.assert_allclose(scores, each[some])
    assert float(mean.result()) == pytest.approx(each.mean())
    assert float(overall.result()) == pytest.approx(both.sum() / either.sum())
    found = tally.result()
    assert [*found] == ["mean_iou", "overall_iou", "empty_accuracy"]
    assert [*found.values()] == pytest.approx([each.mean(), both.sum() / either.sum(), each[2]])
    for metric in (mean, overall):
        assert type(metric).from_config(metric.get_config()).threshold == threshold
        metric.reset_state()
        metric.update_state(TRUTH, LOGITS, np.array([0.0, 2.0, 0.0]))  # of padded batches some count for nothing
        assert float(metric.result()) == pytest.approx(each[1])


def test_nothing_found_where_nothing_is_meant_is_right():
    nothing = np.full((2, 4, 4, 1), -5.0, "float32")
    tally = MaskTally()
    assert tally.result() == {"mean_iou": 0.0, "overall_iou": 1.0}  # no image yet
    tally.add({"segmentation_masks": np.zeros((2, 4, 4, 1), "uint8")}, nothing)
    assert tally.result() == {"mean_iou": 1.0, "overall_iou": 1.0, "empty_accuracy": 1.0}
    tally.add({"segmentation_masks": np.zeros((1, 4, 4, 1), "uint8")}, -nothing[:1])
    assert tally.result()["empty_accuracy"] == pytest.approx(2 / 3)


def test_masks_are_counted_at_their_own_size():
    output = np.full((2, 2, 1), -4.0, "float32")
    output[:, 0] = 4.0
    mask = np.zeros((1, 8, 8, 1), "uint8")
    mask[:, :, :4] = 1
    assert MaskTally().add({"segmentation_masks": mask}, output[None]).tolist() == [1.0]
    np.testing.assert_array_equal(found_in(output, (8, 8), 0.5), mask[0, ..., 0])
    assert found_in(output, (8, 8), 0.9).sum() < 32


def test_a_model_with_them_is_saved_and_loaded(tmp_path):
    model = keras.Sequential([keras.Input((6, 5, 1)), keras.layers.Conv2D(1, 1, data_format="channels_last")])
    model.compile("sgd", MaskLoss(0.5), weighted_metrics=[MaskIoU(0.6), OverallIoU(0.6)])
    measured = model.evaluate(LOGITS, TRUTH.astype("float32"), verbose=0, return_dict=True)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    assert again.evaluate(LOGITS, TRUTH.astype("float32"), verbose=0, return_dict=True) == pytest.approx(measured)
