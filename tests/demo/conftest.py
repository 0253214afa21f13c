import numpy as np
import pytest


@pytest.fixture(scope="module")
def digits():
    """A hundred real digits, `(100, 8, 8)`, 0..255, and their classes."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return np.clip(found.images[:100] * 255 / 16, 0, 255), found.target[:100]


@pytest.fixture(scope="module")
def mnist():
    import keras_vit

    return keras_vit.from_recipe("mnist", pretrained=True)
