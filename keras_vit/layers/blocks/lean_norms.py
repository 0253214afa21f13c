"""The normalizations of blocks, whose gradients keep nothing but the input and two numbers a token."""

import keras
from keras import ops

from keras_vit.layers.own_gradient import own_gradient


class LayerNorm(keras.layers.LayerNormalization):
    """Keras's layer. In training on JAX its gradient is computed from the input, as `normalized` says."""

    def call(self, inputs, training=None):
        if not (training and keeps_less()):
            return super().call(inputs)
        weights = [weight for weight in (self.gamma, self.beta) if weight is not None]

        def formula(x, gamma=None, beta=None):
            return ops.cast(ops.layer_normalization(x, gamma, beta, -1, self.epsilon), self.compute_dtype)

        return normalized(formula, inputs, weights, self.epsilon, centered=True)


class RMSNorm(keras.layers.RMSNormalization):
    """Keras's layer. In training on JAX its gradient is computed from the input, as `normalized` says."""

    def call(self, inputs, training=None):
        if not (training and keeps_less()):
            return super().call(inputs)

        def formula(x, scale):
            return ops.rms_normalization(x, scale, -1, self.epsilon)

        return normalized(formula, inputs, [self.scale], self.epsilon, centered=False)


def keeps_less():
    """Returns whether the gradient of one's own is used: where a compiled step keeps what differentiation names."""
    return keras.backend.backend() == "jax"


def normalized(formula, x, weights, epsilon, centered):
    """Normalizes the last axis, with a gradient that needs little memory.

    What automatic differentiation makes of the formula keeps three arrays in float32 for each layer, as large as the
    tokens: six times their memory in bfloat16. Here the gradient takes the input, and the mean and the deviation of
    each token; all of it is computed in float32.

    Args:
        formula: Function of the input and the weights that returns the output.
        x: Tensor, `(..., channels)`.
        weights: The factor, and the term that is added to the products, `(channels,)`, or less.
        epsilon: Added to the variance, or to the mean square.
        centered: Whether the mean is subtracted; else it is not, and the mean square takes the variance's place.

    Returns:
        Tensor like `x`.
    """

    @own_gradient
    def computed(x, *weights):
        wide = ops.cast(x, "float32")
        mean = ops.mean(wide, axis=-1, keepdims=True) if centered else 0.0
        inverse = ops.rsqrt(ops.mean(ops.square(wide - mean), axis=-1, keepdims=True) + epsilon)

        def gradient(upstream):
            upstream = ops.cast(upstream, "float32")
            unit = (ops.cast(x, "float32") - mean) * inverse  # the input, normalized
            of_weights = [upstream * unit, upstream][: len(weights)]
            of_unit = upstream * ops.cast(weights[0], "float32") if weights else upstream
            less = unit * ops.mean(of_unit * unit, axis=-1, keepdims=True)
            if centered:
                less = less + ops.mean(of_unit, axis=-1, keepdims=True)
            others = tuple(range(len(x.shape) - 1))
            summed = [ops.cast(ops.sum(g, axis=others), w.dtype) for g, w in zip(of_weights, weights)]
            return (ops.cast((of_unit - less) * inverse, x.dtype), *summed)

        return formula(x, *weights), gradient

    return computed(x, *map(ops.convert_to_tensor, weights))
