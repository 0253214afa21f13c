"""Layer and RMS normalization of tokens, over the last axis."""

import keras

from keras_vit.layers.blocks.lean_norms import keeps_less, lean_norm
from keras_vit.layers.tokenwise import tokenwise

NORM = {"rms_norm": False, "epsilon": 1e-6}  # the options of every normalization, and their defaults


def norm(name, *, rms_norm, epsilon, dtype, weights=True):
    """Returns a normalization layer over the last axis.

    Args:
        name: Name of the layer.
        rms_norm: Whether it is an RMS normalization (Zhang and Sennrich 2019, arXiv:1910.07467); else layer
            normalization.
        epsilon: Epsilon of the normalization.
        dtype: Precision policy.
        weights: Whether a layer normalization has a learned scale and shift.
    """
    if rms_norm:
        return keras.layers.RMSNormalization(epsilon=epsilon, name=name, dtype=dtype)
    return keras.layers.LayerNormalization(epsilon=epsilon, center=weights, scale=weights, name=name, dtype=dtype)


class WithNormOrder:
    """Mixin for a block with `norm_order`, the position of the normalization in its residual branches."""

    def normed(self, order, norm, x, training=None):
        """Returns tokens, `(batch, ..., width)`, normalized if `norm_order` equals `order`."""
        if order != self.norm_order:
            return x
        return lean_norm(norm, x) if training and keeps_less() else tokenwise(norm, x)
