"""A model's twin for export: the same function in float32, in forms that runtimes compute fast and in integers too.

- A norm is `d * rsqrt(mean(d * d) + epsilon)` with `d = x - mean(x)`: half the operators of Keras's own, and none that
  integers do not have.
- Attention has one soft-max, which runtimes have an operator for, whatever its form in training.
- Scale and shift of a block's norm go into the kernel and bias after it, and the scale of the scores into the queries'
  part of theirs. That is exact, and saves passes over the tokens.
"""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.keras_private import sublayers
from keras_vit.layers import MLP, MultiHeadSelfAttention, TransformerBlock


def twin(model, *, fold=True, erf=False):
    """Returns a copy of a model in these forms; the model is left as it is.

    Args:
        model: A Keras model under any policy. One that Keras cannot clone, for a layer without a configuration say, is
            returned itself.
        fold: Whether scales and shifts of norms go into what follows. Not for integers: a channel that is large before
            its scale is small after it, and integers of one scale see it so.
        erf: Whether the exact GELU is written with the error function, for ONNX.

    Raises:
        ValueError: If the model cannot be cloned, and is not in float32.
    """
    copy = _copy(model)
    for layer in sublayers(copy) if copy is not model else ():
        kind = type(layer)  # itself: a subclass may compute something else
        if kind is TransformerBlock and layer.norm_first and fold:
            _fold(layer.norm1, layer.attention.qkv)
            _fold(layer.norm2, layer.mlp.fc1)
        if isinstance(layer, MultiHeadSelfAttention):
            layer.own_gradient = False
        if kind is MultiHeadSelfAttention and not layer.qk_norm:
            _fold_scale(layer)
        exact = layer.gelu == "exact" and not layer.swiglu if kind is MLP else None
        if erf and (exact or getattr(layer, "activation", None) is keras.activations.gelu):
            (layer.fc1 if kind is MLP else layer).activation = lambda x: 0.5 * x * (1.0 + ops.erf(x / math.sqrt(2)))
        if kind is keras.layers.LayerNormalization and layer.axis == [-1] and not layer.rms_scaling:
            layer.call = _norm(layer)
    return copy


def float32(model):
    """Returns the model, or its copy in float32: graphs of mixed precision do not convert."""
    return _copy(model) if _mixed(model) else model


def _mixed(model):
    return {layer.dtype_policy.name for layer in sublayers(model, include_self=False)} - {"float32"}


def _copy(model):
    """Returns a copy in float32, or the model itself if it cannot be cloned."""

    def rebuild(layer):  # or an operation of keras.ops, which has no precision of its own
        more = {"dtype": "float32"} if isinstance(layer, keras.layers.Layer) else {}
        return layer.from_config({**layer.get_config(), **more})

    try:
        copy = keras.models.clone_model(model, clone_function=rebuild, recursive=True)
        copy.set_weights(model.get_weights())
    except (ValueError, TypeError, NotImplementedError) as error:
        mixed = _mixed(model)
        if mixed:
            raise ValueError(
                f"A model under {', '.join(sorted(mixed))} is exported through its copy in float32, and {model.name!r} "
                f"cannot be cloned: {error}"
            ) from None
        return model
    for layer in sublayers(copy):
        if hasattr(layer, "finalize_state"):  # of what was adapted to data
            layer.finalize_state()
    return copy


def _fold(norm, dense):
    """Moves a norm's scale and shift into the layer that takes what it gives."""
    variables = (norm.gamma, norm.beta, dense.kernel)
    gamma, beta, kernel = (np.asarray(ops.convert_to_numpy(v), "float64") for v in variables)
    if dense.bias is None and beta.any():
        return
    if dense.bias is not None:
        dense.bias.assign(ops.convert_to_numpy(dense.bias) + beta @ kernel)
    dense.kernel.assign(gamma[:, None] * kernel)
    norm.gamma.assign(np.ones_like(gamma))
    norm.beta.assign(np.zeros_like(beta))


def _fold_scale(attention):
    """Moves the scale of the scores into the queries."""
    width = attention.qkv.kernel.shape[0]
    factors = np.repeat([attention.scale, 1.0, 1.0], width)
    for variable in (attention.qkv.kernel, attention.qkv.bias):
        if variable is not None:
            variable.assign(ops.convert_to_numpy(variable) * factors)
    attention.scale = 1.0


def _norm(layer):
    """Returns the function of a norm, without the scale and the shift if they do nothing."""
    gamma, beta = (None if v is None else ops.convert_to_numpy(v) for v in (layer.gamma, layer.beta))

    def normalize(x):
        d = x - ops.mean(x, axis=-1, keepdims=True)
        y = d * ops.rsqrt(ops.mean(d * d, axis=-1, keepdims=True) + layer.epsilon)
        y = y if gamma is None or (gamma == 1).all() else y * layer.gamma
        return y if beta is None or not beta.any() else y + layer.beta

    return normalize
