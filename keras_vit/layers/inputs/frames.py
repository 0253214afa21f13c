"""Puts the frames of a clip on top of each other, or each into an example of its own."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Positive, Switch


@keras.saving.register_keras_serializable(package="keras_vit")
class Frames(Layer):
    """Puts the frames of a clip on top of each other, or each into an example of its own, or back.

    What cuts patches may see frames on top of each other: no patch is in two. What sees the neighbors of a pixel, such
    as a stem, must see each alone.

    Args:
        frames: Frames of a clip.
        apart: Whether frames on top of each other become examples of their own. Else whatever they are becomes one
            image with the frames on top of each other.

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
