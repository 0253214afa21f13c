"""Joins the patches of consecutive frames to tubelets."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Positive, Switch


@keras.saving.register_keras_serializable(package="keras_vit")
class Tubelets(Layer):
    """Joins flat patches at the same place of consecutive frames to flat tubelets.

    The order is time, row, column; inside a tubelet time, row, column, channel, as in a kernel `(time, height, width,
    channels)`. A dense layer after it equals a 3-D convolution whose stride is its kernel. The layer uses only
    reshapes of at most four dimensions and one transpose. Arnab et al. 2021 (arXiv:2103.15691), section 3.2, "Tubelet
    embedding"; with `length=1`, "Uniform frame sampling".

    Args:
        frames: Number of frames of a clip.
        length: Number of frames of a tubelet, a divisor of `frames`.
        fold: Whether time steps become separate sequences in the batch, as for the spatial encoder of a factorised one.

    Call arguments:
        patches: Tensor of flat patches, frame by frame, as `Patches` cuts them from vertically stacked frames.

    Input shape:
        `(batch, frames * patches, values)`, with known sizes.

    Output shape:
        `(batch, frames / length * patches, length * values)`; with `fold`, `(batch * frames / length, patches, length *
        values)`.

    Raises:
        ValueError: If `length` does not divide the frames, or the frames do not divide the patches.

    Example:

    >>> Tubelets(8)(keras.ops.zeros((2, 8 * 25, 64))).shape
    (2, 100, 128)
    """

    def __init__(self, frames: Positive, length: Positive = 2, fold: Switch = False, **kwargs):
        super().__init__(**kwargs)
        if frames % length:
            raise ValueError(
                f"A tubelet's frames must divide those of a clip. Received: length={length}, frames={frames}"
            )
        self.frames = frames
        self.length = length
        self.fold = fold

    @property
    def steps(self):
        """Number of time steps: tubelets at the same place of a clip."""
        return self.frames // self.length

    def build(self, input_shape):
        if len(input_shape) != 3 or None in tuple(input_shape)[1:] or input_shape[1] % self.frames:
            raise ValueError(
                f"The input of `Tubelets` must be (batch, patches, values), with patches of {self.frames} frames. "
                f"Received: input_shape={tuple(input_shape)}"
            )

    def call(self, patches):
        places, values = patches.shape[1] // self.frames, patches.shape[2]
        x = ops.reshape(patches, (-1, self.length, places, values))  # (batch * steps, length, places, values)
        x = ops.transpose(x, (0, 2, 1, 3))  # (batch * steps, places, length, values)
        return ops.reshape(x, (-1, places * (1 if self.fold else self.steps), self.length * values))

    def compute_output_shape(self, input_shape):
        batch, patches, values = input_shape
        places = patches // self.frames
        if not self.fold:
            return batch, self.steps * places, self.length * values
        return None if batch is None else batch * self.steps, places, self.length * values
