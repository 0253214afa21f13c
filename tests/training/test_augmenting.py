import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit import Augment  # noqa: E402

IMAGES, LABELS = np.zeros((6, 8, 8, 3), "uint8"), np.arange(6) % 3
NUMBERS, MASKS = np.zeros((6, 2), "float32"), np.zeros((6, 8, 8, 1), "uint8")
MIXED = Augment(mixup=0.2)


def batches(*parts):
    return tf.data.Dataset.from_tensor_slices(parts).batch(4)


MASKED = batches(IMAGES, {"segmentation_masks": MASKS})


@pytest.mark.parametrize(
    "data, settings, more, error, said",
    [
        ((IMAGES, LABELS), Augment(), {}, TypeError, "must be a tf.data.Dataset of batches. Received: tuple"),
        (batches(IMAGES, LABELS), {"flip": True}, {}, TypeError, "must be a keras_vit.Augment. Received: {'flip'"),
        (batches(IMAGES, LABELS), Augment(), {"num_classes": 0}, ValueError, "num_classes=0"),
        (batches(IMAGES, LABELS), Augment(), {"seed": -1}, ValueError, "seed=-1"),
        (batches(IMAGES, LABELS).unbatch(), Augment(), {}, ValueError, r"call `.batch\(size\)`. Received: images"),
        (batches(IMAGES, LABELS).batch(2), Augment(), {}, ValueError, "must be numbers of shape"),
        (batches(IMAGES), Augment(), {}, TypeError, r"must yield batches \(images, labels\)"),
        (batches(IMAGES, LABELS), MIXED, {}, ValueError, "labels of classes. Received: num_classes=None"),
        (batches(IMAGES, NUMBERS), MIXED, {"num_classes": 3}, ValueError, r"numbers, \(batch, 3\). Received: float32"),
        (batches(IMAGES, NUMBERS[:, 0]), MIXED, {"num_classes": 3}, ValueError, "Received: float32"),
        (batches(IMAGES, LABELS, LABELS), MIXED, {"num_classes": 3}, ValueError, "no weights of images"),
        (batches(IMAGES, {"masks": MASKS}), Augment(), {}, ValueError, "among labels, .*Received: {'masks'"),
        (batches(IMAGES, {"segmentation_masks": MASKS[:, :4]}), Augment(), {}, ValueError, r"\(batch, 8, 8, 1\)"),
        (batches(IMAGES, {"bounding_boxes": NUMBERS}), Augment(), {}, ValueError, r"\(batch, most, 5\). Received"),
        (MASKED, MIXED, {"num_classes": 3}, ValueError, "neither masks nor boxes"),
        (MASKED, Augment(randaugment=2), {}, ValueError, "moves images only"),
        (batches(IMAGES[..., :2], LABELS), Augment(jitter=0.1), {}, ValueError, "Received: channels=2"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(data, settings, more, error, said):
    with pytest.raises(error, match=said) as caught:
        keras_vit.augment(data, settings, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "images, labels, said",
    [
        (IMAGES + 0.5, LABELS, "from 0 to 255"),
        (IMAGES - 1.0, LABELS, "from 0 to 255"),
        (IMAGES + np.nan, LABELS, "from 0 to 255"),
        (IMAGES, LABELS + 1, "class indices from 0 to 2"),
    ],
)
def test_values_are_checked_in_their_batch(images, labels, said):
    data = keras_vit.augment(batches(images, labels), MIXED, num_classes=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        next(iter(data))
