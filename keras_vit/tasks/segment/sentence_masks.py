"""Loss and scores of the masks of sentences: 1 where a sentence is true, 0 elsewhere; other values are void."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.models.map_outputs import predict
from keras_vit.tasks.tally import Tally
from keras_vit.utils.configured import ImageMean, Loss, arguments_of
from keras_vit.utils.images import mask_pixels, strips


@keras.saving.register_keras_serializable(package="keras_vit")
class MaskLoss(Loss):
    """Binary cross-entropy, averaged over the pixels of an image that are not void; optionally with a Dice loss.

    Lüddecke and Ecker 2022 (CLIPSeg, arXiv:2112.10003), section 4. The Dice loss is
    `1 - (2 * sum(p * t) + 1) / (sum(p) + sum(t) + 1)` of the sentence's pixels, as in `PixelLoss`.

    Args:
        dice: Weight of the Dice loss, 0 to 1; the cross-entropy has the rest.

    Call arguments:
        y_true: `(batch, height, width, 1)`: 1 where the sentence is true, 0 elsewhere. Other values are void.
        y_pred: Logits, `(batch, height, width, 1)`.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, dice=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dice = dice

    def call(self, y_true, y_pred):
        truth, valid = _flat(y_true, y_pred.dtype)  # (batch, pixels)
        logits = ops.reshape(y_pred, ops.shape(truth))
        loss = ops.binary_crossentropy(truth, logits, from_logits=True) * valid
        loss = ops.sum(loss, axis=1) / ops.maximum(ops.sum(valid, axis=1), 1)  # (batch,)
        if self.dice:
            shares = ops.sigmoid(logits) * valid
            both, either = ops.sum(shares * truth, axis=1), ops.sum(shares + truth, axis=1)
            loss = (1 - self.dice) * loss + self.dice * (1 - (2 * both + 1) / (either + 1))
        return loss


@keras.saving.register_keras_serializable(package="keras_vit")
class MaskIoU(ImageMean):
    """Mean over images of the IoU of the sentence's pixels. A sample weight counts for an image.

    Where neither the mask nor the prediction has a pixel, it is 1. Liu et al. 2023 (GRES, arXiv:2306.00968), "gIoU".

    Args:
        threshold: Probability above which a pixel is found.
    """

    def __init__(self, threshold=0.5, name="mean_iou", dtype=None):
        super().__init__(name, dtype)
        self.threshold = threshold

    def update_state(self, y_true, y_pred, sample_weight=None):
        both, either = _overlap(y_true, y_pred, self.threshold)
        values = ops.where(either > 0, both / ops.maximum(either, 1), 1.0)
        return super().update_state(values, sample_weight)


@keras.saving.register_keras_serializable(package="keras_vit")
class OverallIoU(keras.metrics.Metric):
    """IoU of the pixels of all sentences together: large masks count more. A sample weight counts for an image.

    Args:
        threshold: Probability above which a pixel is found.
    """

    def __init__(self, threshold=0.5, name="overall_iou", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.threshold = threshold
        self.both = self.add_weight((), "zeros", name="both")
        self.either = self.add_weight((), "zeros", name="either")

    def update_state(self, y_true, y_pred, sample_weight=None):
        weights = 1.0 if sample_weight is None else ops.reshape(ops.cast(sample_weight, "float32"), (-1,))
        for variable, counts in zip((self.both, self.either), _overlap(y_true, y_pred, self.threshold)):
            variable.assign_add(ops.cast(ops.sum(counts * weights), variable.dtype))

    def result(self):
        return ops.where(self.either > 0, self.both / ops.maximum(self.either, 1), 1.0)

    def get_config(self):
        own = {name: getattr(self, name) for name in arguments_of(type(self), keras.metrics.Metric)}
        return {**super().get_config(), **own}


def _flat(masks, dtype):
    """Returns where a sentence is true, and which pixels count, 1 or 0, `(batch, pixels)` each."""
    masks = ops.reshape(masks, (ops.shape(masks)[0], -1))
    truth = ops.equal(masks, 1)
    return ops.cast(truth, dtype), ops.cast(ops.logical_or(truth, ops.equal(masks, 0)), dtype)


def _overlap(masks, logits, threshold):
    """Returns the pixels of intersection and union of each image, float32 `(batch,)` each."""
    truth, valid = _flat(masks, "float32")
    found = ops.cast(ops.reshape(logits, ops.shape(truth)) > logit_of(threshold), "float32") * valid
    return ops.sum(truth * found, axis=1), ops.sum(ops.maximum(truth, found), axis=1)


def logit_of(probability):
    return math.log(probability / (1 - probability))


def found_in(output, size, threshold):
    """Returns where a sentence is true at the size of an image, uint8 `(rows, columns)`, 1 or 0.

    Args:
        output: Logits, `(height, width, 1)`; they are resized bilinearly, a few rows at a time.
        size: `(rows, columns)`.
        threshold: Probability above which a pixel is found.
    """
    output = np.asarray(output, "float32")
    return predict(np.concatenate([np.full_like(output, logit_of(threshold)), output], axis=-1), size)


class MaskTally(Tally):
    """IoU of the masks of sentences, counted at the size of each mask; see `MaskIoU` and `OverallIoU`.

    Args:
        threshold: Probability above which a pixel is found.
    """

    def __init__(self, threshold=0.5):
        super().__init__()
        self.threshold = threshold
        self.counts = np.zeros(2, "int64")  # of intersection and union

    def add(self, examples, outputs):
        """Counts a batch, and returns the IoU of each image, `(batch,)`, 0..1.

        Args:
            examples: `"segmentation_masks"`, PNG files, `(batch,)`, or uint8 `(batch, rows, columns, 1)`.
            outputs: Logits, `(batch, height, width, 1)`.
        """
        scores = []
        for mask, output in zip(examples["segmentation_masks"], outputs):
            mask = mask_pixels(mask)
            found, counts, pixels = found_in(output, mask.shape, self.threshold), np.zeros(2, "int64"), 0
            for rows in strips(*mask.shape):
                truth, predicted = mask[rows] == 1, (found[rows] == 1) & (mask[rows] <= 1)
                counts += np.count_nonzero(truth & predicted), np.count_nonzero(truth | predicted)
                pixels += np.count_nonzero(truth)
            self.counts += counts
            scores.append(counts[0] / counts[1] if counts[1] else 1.0)
            self.note("mean_iou", scores[-1])
            if not pixels:
                self.note("empty_accuracy", scores[-1])
        return np.asarray(scores)

    def result(self):
        both, either = self.counts
        means = {"mean_iou": 0.0, **super().result()}
        return {"mean_iou": means.pop("mean_iou"), "overall_iou": float(both / either) if either else 1.0, **means}
