"""Luma of images, and the loss and the metric of restoration."""

import keras
from keras import ops

from keras_vit.utils.configured import ImageMean, Loss

# Weights of red, green and blue, 0 to 255, for a luma of 16 to 235: ITU-R BT.601.
WEIGHTS, BLACK = (65.481 / 255, 128.553 / 255, 24.966 / 255), 16.0


def luma(images):
    """Returns the luma of images.

    Args:
        images: Tensor, `(..., 3)` or gray `(..., 1)`, 0..255. Gray images count as three equal channels.

    Returns:
        Tensor, `(..., 1)`, 16..235.
    """
    if images.shape[-1] == 1:
        return images * sum(WEIGHTS) + BLACK
    return ops.sum(images * ops.convert_to_tensor(WEIGHTS, images.dtype), axis=-1, keepdims=True) + BLACK


@keras.saving.register_keras_serializable(package="keras_vit")
class PixelDistance(Loss):
    """Mean absolute error of pixels, divided by 255, as in Lim et al. 2017 (arXiv:1707.02921, "EDSR"), section 3.3.

    Args:
        of_luma: Whether to compare the luma only.

    Call arguments:
        y_true: Original images, `(batch, height, width, channels)`, 0..255.
        y_pred: Restored images, of the same shape and range.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, of_luma=False, **kwargs):
        super().__init__(**kwargs)
        self.of_luma = of_luma

    def call(self, y_true, y_pred):
        if self.of_luma:
            y_true, y_pred = luma(y_true), luma(y_pred)
        return ops.mean(ops.abs(y_true - y_pred), axis=(1, 2, 3)) / 255  # (batch,)


@keras.saving.register_keras_serializable(package="keras_vit")
class PSNR(ImageMean):
    """Peak signal-to-noise ratio in dB, averaged over images; arguments and shapes as in `PixelDistance`.

    Further channels of `y_pred` are ignored.
    """

    def __init__(self, of_luma=False, name="psnr", dtype=None):
        super().__init__(name, dtype)
        self.of_luma = of_luma

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = ops.clip(y_pred[..., : y_true.shape[-1]], 0.0, 255.0)
        if self.of_luma:
            y_true, y_pred = luma(y_true), luma(y_pred)
        errors = ops.mean(ops.square(y_true - y_pred), axis=(1, 2, 3))  # (batch,)
        return super().update_state(10 * ops.log10(255.0**2 / ops.maximum(errors, 1e-6)), sample_weight)
