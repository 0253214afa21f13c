"""The normalization of tokens: of the last axis, by mean and variance or by the root mean square alone."""

import keras

from keras_vit.layers.tokenwise import tokenwise

NORM = {"rms_norm": False, "epsilon": 1e-6}  # the options of every normalization, and their defaults


def norm(name, *, rms_norm, epsilon, dtype, weights=True):
    """Returns a layer normalization, or with `rms_norm` that of Zhang and Sennrich 2019 (arXiv:1910.07467).

    Without `weights`, a layer normalization neither scales nor shifts.
    """
    if rms_norm:
        return keras.layers.RMSNormalization(epsilon=epsilon, name=name, dtype=dtype)
    return keras.layers.LayerNormalization(epsilon=epsilon, center=weights, scale=weights, name=name, dtype=dtype)


class WithNormOrder:
    """Part of a block whose residual branches have their normalizations where `norm_order` says."""

    def normed(self, order, norm, x):
        """Returns tokens, normalized if the block has this order."""
        return tokenwise(norm, x) if order == self.norm_order else x
