"""Makes a sequence of the vectors of a clip's time steps."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class TimeSteps(Layer):
    """Makes a sequence of the vectors of a clip's time steps, prepends a class token, and adds learned positions.

    It precedes the temporal encoder of a factorised encoder. Arnab et al. 2021 (arXiv:2103.15691), section 3.3, "Model
    2: Factorised encoder".

    Args:
        steps: Number of time steps of a clip.

    Call arguments:
        x: Tensor with one vector for each time step, clip by clip.

    Input shape:
        `(batch * steps, width)`.

    Output shape:
        `(batch, 1 + steps, width)`.

    Raises:
        ValueError: If `steps` is not a positive integer.

    Example:

    >>> TimeSteps(4)(keras.ops.zeros((8, 64))).shape
    (2, 5, 64)
    """

    def __init__(self, steps: Positive, **kwargs):
        super().__init__(**kwargs)
        self.steps = steps

    def build(self, input_shape):
        width = input_shape[-1]
        normal = keras.initializers.RandomNormal(stddev=0.02)
        self.class_token = self.add_weight(name="class_token", shape=(1, 1, width), initializer="zeros")
        self.table = self.add_weight(name="table", shape=(1, 1 + self.steps, width), initializer=normal)

    def call(self, x):
        x = ops.reshape(x, (-1, self.steps, x.shape[-1]))  # (batch, steps, width)
        token = ops.broadcast_to(ops.cast(self.class_token, x.dtype), (ops.shape(x)[0], 1, x.shape[-1]))
        return ops.concatenate([token, x], axis=1) + ops.cast(self.table, x.dtype)  # (batch, 1 + steps, width)

    def compute_output_shape(self, input_shape):
        batch, width = input_shape
        return None if batch is None else batch // self.steps, 1 + self.steps, width
