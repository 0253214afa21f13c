"""The vector of a clip by those of its frames."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Positive

SMALLEST = 1e-12  # least squared length: zero vectors stay zero


@keras.saving.register_keras_serializable(package="keras_vit")
class FrameMean(Layer):
    """Averages the vectors of a clip's frames, each brought to length 1 before.

    CLIP4Clip's mean pooling (Luo et al. 2021, arXiv:2104.08860, section 3.3, "parameter-free type"). The mean is not
    brought to length 1: a cosine does not depend on it.

    Args:
        frames: Number of frames of a clip.

    Call arguments:
        x: Vectors of frames, such as CLIP's embeddings; those of a clip follow each other.

    Input shape:
        `(batch * frames, width)`.

    Output shape:
        `(batch, width)`, float32.

    Raises:
        ValueError: If `frames` is not a positive integer, or the input has another rank.

    Example:

    >>> FrameMean(4)(keras.ops.ones((8, 64))).shape
    (2, 64)
    """

    gives = "embeddings"

    def __init__(self, frames: Positive, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.frames = frames

    def build(self, input_shape):
        self._check(input_shape)

    def call(self, x):
        x = x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), SMALLEST))
        return ops.mean(ops.reshape(x, (-1, self.frames, x.shape[-1])), axis=1)

    def compute_output_shape(self, input_shape):
        self._check(input_shape)
        batch, width = input_shape
        return None if batch is None else batch // self.frames, width

    def _check(self, shape):
        if len(shape) != 2 or shape[1] is None or (shape[0] or 0) % self.frames:
            raise ValueError(
                f"The input of `FrameMean` must be vectors of {self.frames} frames of each clip, (batch * frames, "
                f"width). Received: input_shape={tuple(shape)}"
            )
