"""Brightness of colors, and what is computed of it in training."""

import keras
from keras import ops

from keras_vit.utils.configured import ImageMean, Loss

# Of red, green and blue on a scale of 0 to 255, from 16 to 235: ITU-R BT.601.
WEIGHTS, BLACK = (65.481 / 255, 128.553 / 255, 24.966 / 255), 16.0


def luma(images):
    """Returns the brightness of images, `(..., 1)` of `(..., 3)`; gray ones, `(..., 1)`, count as three equal colors.

    Args:
        images: Tensor, pixels from 0 to 255.
    """
    if images.shape[-1] == 1:
        return images * sum(WEIGHTS) + BLACK
    return ops.sum(images * ops.convert_to_tensor(WEIGHTS, images.dtype), axis=-1, keepdims=True) + BLACK


@keras.saving.register_keras_serializable(package="keras_vit")
class PixelDistance(Loss):
    """Mean absolute error of pixels, over 255, as Lim et al. 2017 (arXiv:1707.02921, "EDSR"), section 3.3, train.

    Args:
        of_luma: Whether brightness alone counts.

    Call arguments:
        y_true: Images, `(batch, height, width, channels)`, 0..255.
        y_pred: The same.
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
    """Peak signal-to-noise ratio of each image in dB, averaged over images; see `PixelDistance`."""

    def __init__(self, of_luma=False, name="psnr", dtype=None):
        super().__init__(name, dtype)
        self.of_luma = of_luma

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = ops.clip(y_pred, 0.0, 255.0)
        if self.of_luma:
            y_true, y_pred = luma(y_true), luma(y_pred)
        errors = ops.mean(ops.square(y_true - y_pred), axis=(1, 2, 3))  # (batch,)
        return super().update_state(10 * ops.log10(255.0**2 / ops.maximum(errors, 1e-6)), sample_weight)
