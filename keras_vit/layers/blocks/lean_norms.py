"""Normalization in training, with a gradient that keeps only the input and two numbers a token."""

import keras
from keras import ops

from keras_vit.layers.own_gradient import own_gradient


def keeps_less():
    """Returns whether to use the custom gradient: on JAX, where automatic differentiation keeps float32 copies."""
    return keras.backend.backend() == "jax"


def lean_norm(layer, x):
    """Applies a normalization layer of Keras's to the last axis, with a gradient that needs little memory.

    Automatic differentiation keeps three float32 arrays as large as the input, which is six times the memory of a
    bfloat16 input. This gradient keeps the input, and the mean and the deviation of each token. It is computed in
    float32.

    Args:
        layer: `LayerNormalization` or `RMSNormalization`.
        x: Tensor, `(..., channels)`.

    Returns:
        Tensor like `x`, in the layer's precision.
    """
    if isinstance(layer, keras.layers.RMSNormalization):
        x = ops.cast(x, layer.compute_dtype)  # which its call does
        return _normalized(ops.rms_normalization, x, [layer.scale], layer.epsilon, centered=False)
    weights = [weight for weight in (layer.gamma, layer.beta) if weight is not None]
    y = _normalized(ops.layer_normalization, x, weights, layer.epsilon, centered=True)
    return ops.cast(y, layer.compute_dtype)


def _normalized(formula, x, weights, epsilon, centered):
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

        return formula(x, *weights, axis=-1, epsilon=epsilon), gradient

    return computed(x, *map(ops.convert_to_tensor, weights))
