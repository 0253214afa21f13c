"""A GELU whose gradient stores only the input, and all activations by name."""

import math

import keras
from keras import ops

from keras_vit.layers.own_gradient import own_gradient

SLOPE = math.sqrt(2 / math.pi)
CUBE = 0.044715


@keras.saving.register_keras_serializable(package="keras_vit")
def gelu_tanh(x):
    """Computes the GELU with the approximation by tanh, elementwise on a tensor of any shape."""
    return keras.activations.gelu(x, approximate=True)


@keras.saving.register_keras_serializable(package="keras_vit")
def gelu_quick(x):
    """Computes `x * sigmoid(1.702 x)`, elementwise on a tensor of any shape."""
    return x * ops.sigmoid(1.702 * x)


BY_NAME = {"relu": keras.activations.relu, "exact": keras.activations.gelu, "tanh": gelu_tanh, "quick": gelu_quick}


def recomputed_gelu(x, approximate):
    """Computes the GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415), with a gradient that stores only the input.

    Automatic differentiation would also store the tanh or the error function, as large as the input, for each layer.
    Here the gradient recomputes it, by a different formula: XLA would merge equal expressions and store the result.

    Args:
        x: Tensor of any shape.
        approximate: Whether to use the approximation by tanh.

    Returns:
        Tensor like `x`.
    """

    @own_gradient
    def computed(x):
        def gradient(upstream):
            return upstream * (_tanh_slope(x) if approximate else _exact_slope(x))

        return keras.activations.gelu(x, approximate=approximate), gradient

    return computed(x)


def _tanh_slope(x):
    """Returns the derivative of the tanh approximation, written as `x / (1 + exp(-inner))`."""
    square = x * x
    share = 1 / (1 + ops.exp(-2 * SLOPE * x * (1 + CUBE * square)))
    return share + x * share * (1 - share) * (2 * SLOPE * (1 + 3 * CUBE * square))


def _exact_slope(x):
    """Returns the derivative of the exact GELU: the normal distribution function, plus `x` times its density."""
    return 0.5 + 0.5 * ops.erf(x * math.sqrt(0.5)) + x * (SLOPE / 2) * ops.exp(-0.5 * x * x)
