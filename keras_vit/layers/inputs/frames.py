"""Stacks the frames of a clip vertically, or separates them into images."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Positive, Switch


@keras.saving.register_keras_serializable(package="keras_vit")
class Frames(Layer):
    """Stacks the frames of a clip vertically into one image, or separates them into images of a batch.

    Patches can be cut from stacked frames, since no patch is part of two frames. A layer that sees neighboring pixels,
    such as a stem, needs separate frames.

    Args:
        frames: Number of frames of a clip.
        apart: Whether to separate stacked frames into images of the batch; else clips, or such images, are stacked.

    Call arguments:
        x: Tensor of frames.

    Input shape:
        `(batch, frames, height, width, channels)` or `(batch * frames, height, width, channels)`; with `apart`,
        `(batch, frames * height, width, channels)`.

    Output shape:
        `(batch, frames * height, width, channels)`; with `apart`, `(batch * frames, height, width, channels)`.

    Raises:
        ValueError: If `frames` is not a positive integer, or the input has another number.

    Example:

    >>> Frames(8)(keras.ops.zeros((2, 8, 40, 40, 1))).shape
    (2, 320, 40, 1)
    """

    def __init__(self, frames: Positive, apart: Switch = False, **kwargs):
        super().__init__(**kwargs)
        self.frames = frames
        self.apart = apart

    def build(self, input_shape):
        self._check(input_shape)

    def call(self, x):
        *_, height, width, channels = x.shape
        height = height // self.frames if self.apart else height * self.frames
        return ops.reshape(x, (-1, height, width, channels))

    def compute_output_shape(self, input_shape):
        self._check(input_shape)
        batch, *frames, height, width, channels = input_shape
        if self.apart:
            return None if batch is None else batch * self.frames, height // self.frames, width, channels
        batch = batch if frames or batch is None else batch // self.frames
        return batch, height * self.frames, width, channels

    def _check(self, shape):
        fits = len(shape) in ((4,) if self.apart else (4, 5)) and None not in tuple(shape)[1:]
        counted = shape[1] % self.frames == 0 if self.apart else len(shape) == 4 or shape[1] == self.frames
        if not fits or not counted:
            raise ValueError(
                f"The input of `Frames` must be {self.frames} frames of known size. "
                f"Received: input_shape={tuple(shape)}"
            )
