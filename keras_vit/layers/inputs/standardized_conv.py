"""Convolution with weight standardization."""

import keras
from keras import ops

from keras_vit.layers.base import LAST
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, among, typed

STANDARDIZE = {"google": (1e-5, 0.0), "timm": (0.0, 1e-8)}  # added to the standard deviation, to the variance


@keras.saving.register_keras_serializable(package="keras_vit")
class StandardizedConv2D(keras.layers.Conv2D):
    """Convolves with standardized weights: each output channel's kernel has mean 0 and standard deviation 1.

    Qiao et al. 2019 (arXiv:1903.10520). The weights are standardized at each call, in float32 under any policy.

    Args:
        filters: Output channels.
        kernel_size: As in `keras.layers.Conv2D`.
        standardize: `"google"` divides by `std + 1e-5`, `"timm"` by `sqrt(variance + 1e-8)`.
        **kwargs: As in `keras.layers.Conv2D`, with other defaults: no bias, padding `"same"`, and channels last. If
            the padding is odd, the extra row and column are at the bottom right, as in TensorFlow.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        `(batch, ceil(height / stride), ceil(width / stride), filters)`.

    Raises:
        ValueError: For an unknown `standardize`.
    """

    @typed
    def __init__(
        self,
        filters: Positive,
        kernel_size: int | tuple[int, int],
        *,
        standardize: among(STANDARDIZE) = "google",
        **kwargs,
    ):
        checks.pair("kernel_size", kernel_size)
        super().__init__(filters, kernel_size, **{"padding": "same", "use_bias": False, "data_format": LAST, **kwargs})
        self.standardize = standardize

    def call(self, inputs, training=None):
        pointwise = self.kernel_size == (1, 1) and self.groups == 1 and self.data_format == "channels_last"
        if not (training and pointwise and type(self) is StandardizedConv2D):  # a subclass may convolve differently
            return super().call(inputs)
        # A matrix product: XLA computes its gradients faster than the gradients of a convolution.
        rows, columns = self.strides
        outputs = ops.matmul(inputs[:, ::rows, ::columns], self._standardized(self.kernel, inputs.dtype)[0, 0])
        outputs = outputs + self.bias if self.use_bias else outputs
        return outputs if self.activation is None else self.activation(outputs)

    def convolution_op(self, inputs, kernel):
        """Convolves images, `(batch, height, width, channels)`, with the standardized kernel."""
        return super().convolution_op(inputs, self._standardized(kernel, inputs.dtype))

    def _standardized(self, kernel, dtype):
        weights = ops.cast(kernel, "float32")
        mean, variance = ops.moments(ops.reshape(weights, (-1, self.filters)), axes=[0])
        to_deviation, to_variance = STANDARDIZE[self.standardize]
        return ops.cast((weights - mean) / (ops.sqrt(variance + to_variance) + to_deviation), dtype)

    def get_config(self):
        return {**super().get_config(), "standardize": self.standardize}
