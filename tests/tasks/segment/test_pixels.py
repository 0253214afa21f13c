import keras
import numpy as np
import pytest

from keras_vit.tasks.segment import pixels
from keras_vit.utils import images
from tests.marks import slow_on_jax
from tests.small import peak

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(3, 4, 5, 3)).astype("float32") * 3
MASKS = RNG.integers(0, 3, (3, 4, 5, 1)).astype("uint8")
MASKS[0, :2], MASKS[1, 0, 0], MASKS[2] = 255, 3, 255  # all of the last image is void
PROBABILITY = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
VALID = MASKS[..., 0] < 3
EACH = -np.log(np.take_along_axis(PROBABILITY, np.where(VALID, MASKS[..., 0], 0)[..., None].astype(int), -1)[..., 0])


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
def test_the_loss_is_the_mean_over_the_pixels_that_are_not_void(weights):
    loss = pixels.PixelLoss(weights)
    factor = np.ones(3) if weights is None else np.array(weights)
    each = EACH * factor[np.where(VALID, MASKS[..., 0], 0)]
    wanted = [each[i][VALID[i]].mean() for i in (0, 1)] + [0.0]
    np.testing.assert_allclose(np.asarray(loss.call(MASKS, keras.ops.convert_to_tensor(LOGITS))), wanted, rtol=1e-5)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert float(again(MASKS[..., 0], LOGITS)) == pytest.approx(np.mean(wanted), rel=1e-5)
    weighted = float(loss(MASKS, LOGITS, sample_weight=np.array([2.0, 0.0, 1.0])))
    assert weighted == pytest.approx(2 * wanted[0] / 3, rel=1e-5)


def test_dice_is_the_overlap_of_probabilities_and_classes():
    truth = np.eye(3)[np.where(VALID, MASKS[..., 0], 0)] * VALID[..., None]
    found = PROBABILITY * VALID[..., None]
    both, either = (found * truth).sum((1, 2)), (found + truth).sum((1, 2))
    dice = np.mean(1 - (2 * both + 1) / (either + 1), axis=-1)
    entropy = np.array([EACH[i][VALID[i]].mean() for i in (0, 1)] + [0.0])
    loss = pixels.PixelLoss(dice=0.3)
    found = np.asarray(loss.call(MASKS, keras.ops.convert_to_tensor(LOGITS)))
    np.testing.assert_allclose(found, 0.7 * entropy + 0.3 * dice, rtol=1e-4, atol=1e-6)
    assert found[2] == 0  # void only
    assert loss.get_config()["dice"] == 0.3


def scores(count=3):
    return [pixels.MeanIoU(count), pixels.PixelAccuracy()]


def test_metrics_are_the_tallys():
    tally = pixels.PixelTally(("a", "b", "c"))
    tally.add({"segmentation_masks": MASKS[:2]}, LOGITS[:2])
    wanted = tally.result()
    for metric in scores():
        for weight in (None, np.array([1.0, 1.0, 0.0])):
            metric.reset_state()
            metric.update_state(MASKS, LOGITS, weight)
            assert float(metric.result()) == pytest.approx(wanted[metric.name], rel=1e-5)
        metric.reset_state()
        metric.update_state(MASKS, LOGITS, np.array([0.0, 1.0, 1.0]))
        one = pixels.PixelTally(("a", "b", "c"))
        one.add({"segmentation_masks": MASKS[1:]}, LOGITS[1:])
        assert float(metric.result()) == pytest.approx(one.result()[metric.name], rel=1e-5)
        again = keras.metrics.deserialize(keras.metrics.serialize(metric))
        assert again.get_config() == metric.get_config()


def test_fits_compiled_by_xla_with_padding():
    """Two images of weight 0 change nothing."""
    model = keras.Sequential([keras.Input((4, 5, 3)), keras.layers.Identity()])
    model.compile("sgd", pixels.PixelLoss(), weighted_metrics=scores(), jit_compile=True)
    images, masks = np.concatenate([LOGITS, LOGITS[:2]]), np.concatenate([MASKS, 2 - np.minimum(MASKS[:2], 2)])
    plain = model.evaluate(LOGITS, MASKS, batch_size=5, verbose=0, return_dict=True)
    padded = model.evaluate(
        images, masks, batch_size=5, sample_weight=np.array([1.0, 1, 1, 0, 0]), verbose=0, return_dict=True
    )
    padded["loss"] *= 5 / 3  # Keras divides by the number of images, with those of weight 0
    assert plain == pytest.approx(padded, rel=1e-5) and plain["mean_iou"] > 0


def test_the_tally_counts_at_the_masks_own_size():
    logits = np.zeros((1, 2, 2, 2), "float32")
    logits[0, :, 1, 1] = 1  # right half: class 1
    logits[0, :, 0, 0] = 1
    truth = np.repeat([[5] * 4 + [6] * 3 + [9]], 6, axis=0).astype("uint8")  # 6 x 8, classes from 5, one column void
    tally = pixels.PixelTally(("left", "right"), first=5)
    (score,) = tally.add({"segmentation_masks": truth[None, ..., None]}, logits)
    assert tally.matrix.tolist() == [[24, 0], [0, 18]]
    assert score == 1 and tally.result() == {"mean_iou": 1, "pixel_accuracy": 1, "iou left": 1, "iou right": 1}
    tally.add({"segmentation_masks": [np.full((6, 8, 1), 6, "uint8")]}, logits)  # half is right
    np.testing.assert_allclose(list(tally.result().values())[:2], [(24 / 48 + 42 / 66) / 2, 66 / 90])


def test_a_class_that_is_nowhere_does_not_count():
    tally = pixels.PixelTally(("a", "b", "c"))
    assert tally.result() == {"mean_iou": 0, "pixel_accuracy": 0}
    logits = np.eye(3, dtype="float32")[[[[0, 1]]]]
    (void,) = tally.add({"segmentation_masks": [np.full((1, 2), 255, "uint8")]}, logits)
    (half,) = tally.add({"segmentation_masks": [np.array([[0, 0]], "uint8")]}, logits)
    assert (void, half) == (1, 0.25)  # "c" is in neither mask nor prediction
    assert set(tally.result()) == {"mean_iou", "pixel_accuracy", "iou a", "iou b"}
    assert len(tally.figures()) == 2


@slow_on_jax
def test_pixels_are_counted_beyond_the_integers_of_float32():
    """20 million of one class in one batch, four fifths of them right; float32 counts to 16.8 million by ones."""
    metric = pixels.MeanIoU(2)
    logits = np.zeros((1, 5000, 5000, 2), "float16")
    logits[0, :4000, :, 0] = logits[0, 4000:, :, 1] = 1
    metric.update_state(np.zeros((1, 5000, 5000), "uint8"), logits)
    assert float(metric.result()) == pytest.approx(0.4)  # 0.8 and 0


def test_a_large_mask_takes_a_byte_a_pixel(monkeypatch):
    monkeypatch.setattr(images, "STRIP", 2**16)
    tally, mask = pixels.PixelTally(("a", "b", "c")), np.zeros((1500, 1000), "uint8")
    examples = {"segmentation_masks": [mask]}
    assert peak(lambda: tally.add(examples, LOGITS[:1])) < 2 * mask.size  # a class's logits alone would be 4
