"""Embeds numbers, such as the time of a diffusion model, as vectors."""

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.utils.typed import AboveZero, Positive, Switch

LONGEST = 10000.0  # longest wavelength of the scaled time, over 2 pi


@keras.saving.register_keras_serializable(package="keras_vit")
class TimeEmbedding(Layer):
    """Embeds times: cosines and sines of many frequencies, and an MLP of two dense layers with a SiLU between.

    As in DiT (Peebles and Xie 2023, arXiv:2212.09748) and diffusers. Angles are computed in float32 under any policy:
    bfloat16 has steps of 4 between 512 and 1,024.

    Args:
        width: Channels of the vector.
        scale: Factor of the times before the frequencies 1 to 1/10,000: `1000` for times from 0 to 1, `1` for steps
            from 0 to 999.
        channels: Number of cosines and sines, an even number.
        closed: Whether the lowest frequency is 1/10,000, as in diffusers; else it is slightly higher, as in DiT.

    Call arguments:
        times: Tensor of numbers, one for each image.

    Input shape:
        `(batch,)`.

    Output shape:
        `(batch, width)`.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> TimeEmbedding(64)(keras.ops.convert_to_tensor([0.0, 0.5])).shape
    (2, 64)
    """

    def __init__(
        self, width: Positive, *, scale: AboveZero = 1000.0, channels: Positive = 256, closed: Switch = False, **kwargs
    ):
        super().__init__(autocast=False, **kwargs)
        if channels % 2 or (closed and channels < 4):
            raise ValueError(
                f"`channels` must be even, and 4 or more where `closed`. Received: channels={channels}, closed={closed}"
            )
        self.width = width
        self.scale = scale
        self.channels = channels
        self.closed = closed

    def build(self, input_shape):
        self.fc1 = Dense(self.width, activation="silu", name="fc1", dtype=self.dtype_policy)
        self.fc1.build((None, self.channels))
        self.fc2 = Dense(self.width, name="fc2", dtype=self.dtype_policy)
        self.fc2.build((None, self.width))
        half = self.channels // 2
        self.frequencies = np.float32(LONGEST ** -(np.arange(half) / (half - self.closed)))

    def call(self, times):
        angles = self.scale * ops.cast(times, "float32")[:, None] * ops.convert_to_tensor(self.frequencies)
        waves = ops.concatenate([ops.cos(angles), ops.sin(angles)], axis=-1)  # (batch, channels)
        return self.fc2(self.fc1(ops.cast(waves, self.compute_dtype)))

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.width)
