"""Loss and scores of semantic segmentation. Pixels with a value outside the classes are void: they do not count."""

import keras
import numpy as np
from keras import ops

from keras_vit.models.map_outputs import predict
from keras_vit.models.outputs import distinct
from keras_vit.tasks.tally import Tally
from keras_vit.utils import metrics
from keras_vit.utils.configured import ImageMean, Loss
from keras_vit.utils.images import mask_pixels, strips

VOID = 255  # also outside the original mask after augmentation


@keras.saving.register_keras_serializable(package="keras_vit")
class PixelLoss(Loss):
    """Softmax cross-entropy, averaged over the pixels of an image that are not void; optionally with a Dice loss.

    The Dice loss of a class is `1 - (2 * sum(p * t) + 1) / (sum(p) + sum(t) + 1)`, where `p` is a pixel's probability
    and `t` is 1 in the class and 0 elsewhere; it is averaged over the classes. Milletari et al. 2016 (V-Net,
    arXiv:1606.04797), section 3, without the squares.

    Args:
        class_weights: Weight of the cross-entropy of a pixel, one per class; `None` for 1.
        dice: Weight of the Dice loss, 0 to 1; the cross-entropy has the rest.

    Call arguments:
        y_true: Class indices, integers, `(batch, height, width)` or `(batch, height, width, 1)`. Other values are void.
        y_pred: Logits, `(batch, height, width, classes)`.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, class_weights=None, dice=0.0, **kwargs):
        super().__init__(**kwargs)
        self.class_weights = None if class_weights is None else [float(w) for w in class_weights]
        self.dice = dice

    def call(self, y_true, y_pred):
        labels, valid = _flat(y_true, y_pred)  # (batch, pixels)
        logits = ops.reshape(y_pred, (ops.shape(y_pred)[0], -1, y_pred.shape[-1]))  # (batch, pixels, classes)
        loss = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        if self.class_weights is not None:
            loss = loss * ops.take(ops.convert_to_tensor(self.class_weights, loss.dtype), labels)
        valid = ops.cast(valid, loss.dtype)
        loss = ops.sum(loss * valid, axis=1) / ops.maximum(ops.sum(valid, axis=1), 1)  # (batch,)
        if self.dice:
            predicted = ops.softmax(logits, axis=-1) * valid[..., None]
            truth = ops.one_hot(labels, logits.shape[-1], dtype=predicted.dtype) * valid[..., None]
            both, either = ops.sum(predicted * truth, axis=1), ops.sum(predicted + truth, axis=1)  # (batch, classes)
            loss = (1 - self.dice) * loss + self.dice * ops.mean(1 - (2 * both + 1) / (either + 1), axis=-1)
        return loss  # (batch,)


@keras.saving.register_keras_serializable(package="keras_vit")
class MeanIoU(keras.metrics.MeanIoU):
    """Mean IoU of the classes. A sample weight counts for an image. Shapes are the same as in `PixelLoss`.

    Pixels are counted as integers: a sum of ones in float32 ends at 2**24, a batch of 64 images of 512 x 512.
    """

    def __init__(self, num_classes, name="mean_iou", dtype="float32"):
        super().__init__(num_classes, name, dtype, sparse_y_pred=False)

    def update_state(self, y_true, y_pred, sample_weight=None):
        (labels, valid), classes = _flat(y_true, y_pred), self.num_classes
        predicted = ops.reshape(ops.cast(ops.argmax(y_pred, axis=-1), labels.dtype), ops.shape(labels))
        cells = ops.where(valid, labels * classes + predicted, classes**2)  # the last cell is for void
        weights = ops.ones_like(cells)
        if sample_weight is not None:
            weights = ops.cast(weights, self.dtype) * ops.reshape(ops.cast(sample_weight, self.dtype), (-1, 1))
        counts = ops.segment_sum(ops.reshape(weights, (-1,)), ops.reshape(cells, (-1,)), classes**2 + 1)[:-1]
        self.total_cm.assign_add(ops.cast(ops.reshape(counts, (classes, classes)), self.total_cm.dtype))

    def get_config(self):  # without the settings of Keras's class that are fixed here
        return {"num_classes": self.num_classes, "name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_vit")
class PixelAccuracy(ImageMean):
    """Share of the pixels with the right class. A sample weight counts for an image. Shapes as in `PixelLoss`."""

    def __init__(self, name="pixel_accuracy", dtype=None):
        super().__init__(name, dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels, valid = _flat(y_true, y_pred)
        predicted = ops.reshape(ops.argmax(y_pred, axis=-1), ops.shape(labels))
        weights = ops.cast(valid, self.dtype)
        if sample_weight is not None:
            weights = weights * ops.reshape(ops.cast(sample_weight, self.dtype), (-1, 1))
        return super().update_state(ops.equal(labels, ops.cast(predicted, labels.dtype)), weights)


def _flat(masks, logits):
    """Returns class indices, int32 `(batch, pixels)`, 0 for void, and whether each pixel counts, booleans."""
    labels = ops.reshape(ops.cast(masks, "int32"), (ops.shape(logits)[0], -1))
    valid = ops.logical_and(labels >= 0, labels < logits.shape[-1])
    return ops.where(valid, labels, 0), valid


class PixelTally(Tally):
    """IoU and pixel accuracy from a confusion matrix, counted at the size of each mask.

    Args:
        class_names: Names of the classes.
        first: Value of the first class in the masks.
    """

    def __init__(self, class_names, first=0):
        super().__init__()
        self.names = distinct(tuple(class_names))
        self.first = first
        self.matrix = np.zeros((len(self.names),) * 2, "int64")  # (true class, predicted class), in pixels

    def add(self, examples, outputs):
        """Counts a batch, and returns the mean IoU of each image, `(batch,)`, 0..1.

        Args:
            examples: `"segmentation_masks"`, PNG files, `(batch,)`, or uint8 `(batch, rows, columns, 1)`.
            outputs: Logits, `(batch, height, width, classes)`.
        """
        scores = []
        for mask, output in zip(examples["segmentation_masks"], outputs):
            mask = mask_pixels(mask)
            predicted = predict(output, mask.shape)
            matrix = np.zeros_like(self.matrix)
            for rows in strips(*mask.shape):
                matrix += confusion(mask[rows].astype("int64") - self.first, predicted[rows], len(self.names))
            self.matrix += matrix
            scores.append(np.nanmean(metrics.iou(matrix)) if matrix.any() else 1.0)  # 1: all pixels are void
        return np.asarray(scores)

    def result(self):
        each, right = metrics.iou(self.matrix), np.trace(self.matrix)
        return {
            "mean_iou": float(np.nanmean(each)) if self.matrix.any() else 0.0,
            "pixel_accuracy": float(right / max(self.matrix.sum(), 1)),
            **{f"iou {name}": float(value) for name, value in zip(self.names, each) if not np.isnan(value)},
        }

    def figures(self):
        from keras_vit import plots

        return {
            "Intersection over union of each class, lowest first.": plots.plot_iou(self.matrix, self.names),
            "Confusion of pixels: shares of the true class.": plots.plot_pixels(self.matrix, self.names),
        }


def confusion(labels, predicted, count):
    """Returns the confusion matrix, `(true class, predicted class)`, of integer arrays of one shape, without void."""
    valid = (labels >= 0) & (labels < count)
    pairs = np.bincount(labels[valid] * count + predicted[valid], minlength=count**2)
    return pairs.reshape(count, count)
