"""The model that is fitted for an autoencoder of latents: it draws the latents that are decoded."""

import math

import keras
from keras import ops

from keras_vit.models.whole_autoencoder import DECODER, encoder_of

LOG_VARIANCE = (-30.0, 20.0)  # where diffusers clips it


class AutoencoderLearner(keras.Model):
    """Trains an autoencoder: latents are drawn in training, `mean + exp(log variance / 2) noise`, else their mean.

    Args:
        model: Model from `autoencoder`.

    Call arguments:
        images: Pixels, 0 to 255, `(batch, height, width, channels)`.

    Output shape:
        `(batch, height, width, channels + 1)`, float32: as `LatentLoss` takes it.
    """

    def __init__(self, model, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.dtype_policy = model.dtype_policy  # tells `compile` to scale the loss of float16
        self.encoder = encoder_of(model)
        self.decoder = model.get_layer(DECODER)
        self.noise = keras.layers.GaussianNoise(1.0, name="latent_noise", dtype="float32")
        self.built = True

    @property
    def output_shape(self):
        *size, channels = self.decoder.output_shape
        return (*size, channels + 1)

    def call(self, images, training=None):
        mean, log = ops.split(self.encoder(images, training=training), 2, axis=-1)
        log = ops.clip(log, *LOG_VARIANCE)
        noise = self.noise(ops.zeros_like(mean), training=training)
        pixels = ops.cast(self.decoder(mean + ops.exp(log / 2) * noise, training=training), "float32")
        divergence = ops.sum(ops.square(mean) + ops.exp(log) - 1 - log, axis=(1, 2, 3), keepdims=True) / 2
        share = divergence / math.prod(pixels.shape[1:])  # (batch, 1, 1, 1)
        return ops.concatenate([pixels, ops.broadcast_to(share, (*ops.shape(pixels)[:3], 1))], axis=-1)
