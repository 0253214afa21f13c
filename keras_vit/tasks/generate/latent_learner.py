"""The model that is fitted for a DiT of latents: a frozen encoder, and the DiT."""

import keras
from keras import ops

LOG_VARIANCE = (-30.0, 20.0)  # where diffusers clips it


class LatentLearner(keras.Model):
    """Trains a DiT on the latents of images, which a frozen encoder makes in each step.

    A latent is drawn as the encoder says, `mean + exp(log variance / 2) spread` (Rombach et al. 2022, arXiv:2112.10752,
    section 3.1), and mixed with noise, `x = (1 - t) noise + t latent`.

    Args:
        model: Model from `dit`.
        encoder: Model from `latent_encoder`, for latents of the DiT's size. It is frozen.

    Call arguments:
        inputs: Dictionary of `"pixels"`, 0 to 255, `(batch, height, width, channels)`; `"images"`, normal noise, and
            `"spread"`, more of it, both `(batch, rows, columns, latent channels)`; `"times"`, `(batch,)`, and
            `"labels"` or `"texts"`, as the DiT takes them.

    Output shape:
        `(batch, rows, columns, latent channels)`: the DiT's velocity minus the latent, float32. With the true velocity
        it is minus the noise.
    """

    def __init__(self, model, encoder, **kwargs):
        super().__init__(autocast=False, **kwargs)  # pixels and noise stay as they are
        self.dtype_policy = model.dtype_policy  # tells `compile` to scale the loss of float16
        encoder.trainable = False
        self.dit = model
        self.encoder = encoder
        self.built = True

    @property
    def output_shape(self):
        return self.dit.output_shape

    def call(self, inputs, training=None):
        mean, spread = ops.split(self.encoder(inputs["pixels"], training=False), 2, axis=-1)
        spread = ops.exp(ops.clip(spread, *LOG_VARIANCE) / 2) * inputs["spread"]
        latent = ops.stop_gradient(mean + spread)
        t = ops.reshape(inputs["times"], (-1, 1, 1, 1))
        given = {name: value for name, value in inputs.items() if name not in ("pixels", "spread")}
        given["images"] = (1 - t) * inputs["images"] + t * latent
        return ops.cast(self.dit(given, training=training), "float32")[..., : latent.shape[-1]] - latent
