"""Weights of a first convolution that nearly decorrelate the pixels of an image."""

import keras
import numpy as np

SCALE = 8.0  # large, so that training changes them slowly; normalization follows


def decorrelating(shape, dtype=None):
    """Initializes the kernels of a convolution as three-dimensional cosine transforms, each with both signs.

    Basis vectors of the discrete cosine transform (Ahmed, Natarajan and Rao 1974, "Discrete cosine transform") along
    rows, columns and channels. Low frequencies come first, because photographs vary most along them. Over red, green
    and blue, the transform gives brightness and two opponent colors. A ReLU drops the negative half of a response, so
    each kernel has a copy of the opposite sign.

    Args:
        shape: `(rows, columns, channels, filters)`.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape.

    Raises:
        ValueError: If there are more filters than basis vectors, counting both signs.
    """
    *sides, filters = shape
    most = 2 * int(np.prod(sides))
    if filters > most:
        raise ValueError(
            f"A 'whiten' convolution on {sides[-1]} channels has at most {most} filters. Received: filters={filters}"
        )
    waves = sorted(np.ndindex(*sides), key=lambda wave: sum(number**2 for number in wave))
    half = np.stack([_basis(sides, wave) for wave in waves[: -(-filters // 2)]], axis=-1)
    return keras.ops.convert_to_tensor(SCALE * np.concatenate([half, -half], axis=-1)[..., :filters], dtype)


def _basis(sides, wave):
    """Returns the product of one cosine along each axis, an array of shape `sides`, with norm 1."""
    array = np.ones(())
    for side, number in zip(sides, wave):
        array = np.multiply.outer(array, np.cos(np.pi * (np.arange(side) + 0.5) * number / side))
    return array / np.linalg.norm(array)
