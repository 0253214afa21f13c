"""Layer and RMS normalization of tokens, over the last axis."""

import keras

from keras_vit.layers.blocks.lean_norms import LayerNorm, RMSNorm
from keras_vit.layers.tokenwise import tokenwise

NORM = {"rms_norm": False, "epsilon": 1e-6}  # the options of every normalization, and their defaults


def norm(name, *, rms_norm, epsilon, dtype, weights=True):
    """Returns a normalization layer over the last axis, as part of another layer; see `plain_norm` for models.

    Args:
        name: Name of the layer.
        rms_norm: Whether it is an RMS normalization (Zhang and Sennrich 2019, arXiv:1910.07467); else layer
            normalization.
        epsilon: Epsilon of the normalization.
        dtype: Precision policy.
        weights: Whether a layer normalization has a learned scale and shift.
    """
    if rms_norm:
        return RMSNorm(epsilon=epsilon, name=name, dtype=dtype)
    return LayerNorm(epsilon=epsilon, center=weights, scale=weights, name=name, dtype=dtype)


def plain_norm(name, *, rms_norm, epsilon, dtype):
    """Returns such a layer of Keras's own, whose name stands in a model's file. Arguments are those of `norm`."""
    kind = keras.layers.RMSNormalization if rms_norm else keras.layers.LayerNormalization
    return kind(epsilon=epsilon, name=name, dtype=dtype)


class WithNormOrder:
    """Mixin for a block with `norm_order`, the position of the normalization in its residual branches."""

    def normed(self, order, norm, x):
        """Returns tokens, `(batch, ..., width)`, normalized if `norm_order` equals `order`."""
        return tokenwise(norm, x) if order == self.norm_order else x
