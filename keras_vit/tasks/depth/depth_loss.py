"""Losses and the metric of depth estimation. Pixels of depth 0 are holes: they do not count."""

import keras
from keras import ops

from keras_vit.utils.configured import ImageMean, Loss

SCALES = 4  # number of scales of the gradients: 1, 1/2, 1/4, 1/8 of the size
TINY = 1e-4


@keras.saving.register_keras_serializable(package="keras_vit")
class DepthLoss(Loss):
    """Scale- and shift-invariant loss of inverse depth, with the gradients of its error at four scales.

    Ranftl et al. 2019 (arXiv:1907.01341), section 5: both maps are shifted by their medians and divided by their mean
    absolute deviations from these (equations 5 and 6). The loss is half the mean absolute error (equation 7, without
    trimming) and, times `gradients`, the mean absolute differences of the error between neighbors (equation 11).

    Args:
        gradients: Weight of the gradients; 0.5 in the paper.

    Call arguments:
        y_true: Inverse depth, `(batch, height, width, 1)`, 0 in holes.
        y_pred: Predicted inverse depth, `(batch, height, width, 1)`, of any scale and shift.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, gradients=0.5, **kwargs):
        super().__init__(**kwargs)
        self.gradients = gradients

    def call(self, y_true, y_pred):
        mask = ops.cast(y_true > 0, y_pred.dtype)
        error = (_aligned(y_pred, mask) - _aligned(ops.cast(y_true, y_pred.dtype), mask)) * mask
        axes = (1, 2, 3)
        loss = ops.sum(ops.abs(error), axes) / ops.maximum(2 * ops.sum(mask, axes), 1)  # (batch,)
        for i in range(SCALES if self.gradients else 0):
            some, there = error[:, :: 2**i, :: 2**i], mask[:, :: 2**i, :: 2**i]
            down = ops.abs(some[:, 1:] - some[:, :-1]) * there[:, 1:] * there[:, :-1]
            across = ops.abs(some[:, :, 1:] - some[:, :, :-1]) * there[:, :, 1:] * there[:, :, :-1]
            steps = ops.sum(down, axes) + ops.sum(across, axes)
            loss = loss + self.gradients * steps / ops.maximum(ops.sum(there, axes), 1)
        return loss  # (batch,)


def _aligned(maps, mask):
    """Returns maps, `(batch, height, width, 1)`, minus their median, over their mean absolute deviation."""
    count = ops.sum(mask, (1, 2, 3), keepdims=True)  # (batch, 1, 1, 1)
    flat = ops.reshape(ops.where(mask > 0, maps, 1e9), (ops.shape(maps)[0], -1))  # holes are sorted last
    middle = ops.cast(ops.maximum((count[:, 0, 0] - 1) // 2, 0), "int32")  # (batch, 1)
    median = ops.take_along_axis(ops.sort(flat, axis=1), middle, axis=1)[:, :, None, None]
    median = ops.where(count > 0, median, 0.0)
    moved = (maps - median) * mask
    return moved / (ops.sum(ops.abs(moved), (1, 2, 3), keepdims=True) / ops.maximum(count, 1) + TINY)


@keras.saving.register_keras_serializable(package="keras_vit")
class MetersLoss(Loss):
    """Scale-invariant logarithmic error of depth: the root of the mean square of `log(d / d*)`, less most of its mean.

    Eigen et al. 2014 (arXiv:1406.2283), equation 4, with the factor 0.85 of Lee et al. 2019 (arXiv:1907.10326).

    Args:
        share: Share of the squared mean that is subtracted, 0 to 1.

    Call arguments:
        y_true: Depth, `(batch, height, width, 1)`, 0 in holes.
        y_pred: Predicted depth, `(batch, height, width, 1)`, in the same unit.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, share=0.85, **kwargs):
        super().__init__(**kwargs)
        self.share = share

    def call(self, y_true, y_pred):
        mask = ops.cast(y_true > 0, y_pred.dtype)
        ratio = ops.log(ops.maximum(y_pred, TINY)) - ops.log(ops.where(mask > 0, y_true, 1.0))
        count = ops.maximum(ops.sum(mask, (1, 2, 3)), 1)
        mean = ops.sum(ratio * mask, (1, 2, 3)) / count
        square = ops.sum(ratio**2 * mask, (1, 2, 3)) / count
        return ops.sqrt(ops.maximum(square - self.share * mean**2, 0) + 1e-6)  # (batch,)


@keras.saving.register_keras_serializable(package="keras_vit")
class RelativeError(ImageMean):
    """Mean absolute relative error of depth over the known pixels of an image. A sample weight counts for an image.

    `y_true` and `y_pred` are `(batch, height, width, 1)`; `y_true` is 0 in holes.

    Args:
        inverse: Whether both are inverse depth, the prediction of any scale and shift. It is first fitted to `y_true`
            by least squares, and clipped at the smallest true value, the farthest pixel.
    """

    def __init__(self, inverse=False, name="abs_rel", dtype=None):
        super().__init__(name, dtype)
        self.inverse = inverse

    def update_state(self, y_true, y_pred, sample_weight=None):
        mask = ops.cast(y_true > 0, self.dtype)
        truth = ops.where(mask > 0, ops.cast(y_true, self.dtype), 1.0)
        prediction = ops.cast(y_pred, self.dtype)
        if self.inverse:
            least = ops.min(ops.where(mask > 0, truth, 1e9), (1, 2, 3), keepdims=True)
            truth, prediction = 1 / truth, 1 / ops.maximum(_fitted(prediction, truth, mask), least)
        errors = ops.abs(prediction - truth) / truth * mask
        count = ops.sum(mask, (1, 2, 3))
        weight = 1.0 if sample_weight is None else ops.reshape(ops.cast(sample_weight, self.dtype), (-1,))
        weight = weight * ops.cast(count > 0, self.dtype)
        return super().update_state(ops.sum(errors, (1, 2, 3)) / ops.maximum(count, 1), weight)


def _fitted(prediction, truth, mask):
    """Returns predictions with the scale, at least 0, and shift that fit the truth best, by least squares."""
    axes, count = (1, 2, 3), ops.maximum(ops.sum(mask, (1, 2, 3), keepdims=True), 1)
    mean, center = (ops.sum(x * mask, axes, keepdims=True) / count for x in (prediction, truth))
    moved = (prediction - mean) * mask
    slope = ops.maximum(ops.sum(moved * (truth - center), axes, keepdims=True), 0)
    return center + slope / ops.maximum(ops.sum(moved**2, axes, keepdims=True), 1e-12) * (prediction - mean)
