"""A learned scale for each channel of a residual branch."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Number


@keras.saving.register_keras_serializable(package="keras_vit")
class LayerScale(Layer):
    """Multiplies each channel by a learned scale that starts small.

    Touvron et al. 2021, "Going deeper with image transformers" (arXiv:2103.17239), section 2.

    Args:
        initial_value: Initial value of every scale, such as 1e-4 to 1e-6 for deep models.

    Call arguments:
        x: Tensor, channels last.

    Input shape:
        `(batch, ..., width)`.

    Output shape:
        Same as the input shape.

    Example:

    >>> LayerScale(1e-4)(keras.ops.ones((2, 50, 64))).shape
    (2, 50, 64)
    """

    def __init__(self, initial_value: Number = 1e-4, **kwargs):
        super().__init__(**kwargs)
        self.initial_value = initial_value
        self.supports_masking = True

    def build(self, input_shape):
        self.gamma = self.add_weight(
            name="gamma", shape=(input_shape[-1],), initializer=keras.initializers.Constant(self.initial_value)
        )

    def call(self, x):
        return x * ops.cast(self.gamma, x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
