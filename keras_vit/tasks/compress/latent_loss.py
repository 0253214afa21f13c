"""The loss of an autoencoder of latents."""

import keras
from keras import ops

from keras_vit.utils.configured import Loss


@keras.saving.register_keras_serializable(package="keras_vit")
class LatentLoss(Loss):
    """Mean absolute error of pixels from -1 to 1, plus a weighted divergence of the latents from normal noise.

    Rombach et al. 2022 (arXiv:2112.10752), section 3.1 and appendix G, without the adversary and the perceptual loss:
    both terms are sums over an image there, and are divided by its number of values here.

    Args:
        kl: Weight of the divergence.

    Call arguments:
        y_true: Images, `(batch, height, width, channels)`, 0..255.
        y_pred: What the decoder made of their latents, `(batch, height, width, channels + 1)`. The last channel is the
            Kullback-Leibler divergence of all latents of an image, in nats, divided by `height * width * channels`.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, kl=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.kl = kl

    def call(self, y_true, y_pred):
        pixels = ops.mean(ops.abs(y_true - y_pred[..., :-1]), axis=(1, 2, 3)) / 127.5
        return pixels + self.kl * ops.mean(y_pred[..., -1], axis=(1, 2))  # (batch,)
