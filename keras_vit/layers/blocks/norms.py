"""The normalisation of tokens: of the last axis, by mean and variance or by the root mean square alone."""

import keras


def norm(name, *, rms_norm, epsilon, dtype):
    """Returns a layer normalisation, or with `rms_norm` that of Zhang and Sennrich 2019 (arXiv:1910.07467)."""
    kind = keras.layers.RMSNormalization if rms_norm else keras.layers.LayerNormalization
    return kind(epsilon=epsilon, name=name, dtype=dtype)
