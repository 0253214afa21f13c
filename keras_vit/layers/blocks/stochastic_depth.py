"""Stochastic depth: drops a residual branch for whole samples."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Rate


@keras.saving.register_keras_serializable(package="keras_vit")
class StochasticDepth(Layer):
    """Sets each sample to zero with probability `rate` and divides the others by `1 - rate`.

    On a residual branch, this skips the branch for some samples of a batch. The expected value does not
    change. Huang et al. 2016 (arXiv:1603.09382), per sample as in timm and vit_jax.

    Args:
        rate: Probability of dropping a sample, from 0 to below 1.
        seed: Integer seed; `None` for a random one.

    Call arguments:
        x: Tensor, batch first.
        training: Whether to drop samples.

    Input shape:
        `(batch, ...)`.

    Output shape:
        Same as the input shape.

    Raises:
        ValueError: If `rate` is outside [0, 1).

    Example:

    >>> StochasticDepth(0.1)(keras.ops.ones((2, 50, 64)), training=True).shape
    (2, 50, 64)
    """

    def __init__(self, rate: Rate, *, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed = seed
        if rate > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, input_shape):
        self.noise_shape = (1,) * (len(input_shape) - 1)

    def call(self, x, training=None):
        if not training or self.rate == 0:
            return x
        return keras.random.dropout(
            x, self.rate, noise_shape=(ops.shape(x)[0], *self.noise_shape), seed=self.seed_generator
        )

    def compute_output_shape(self, input_shape):
        return input_shape
