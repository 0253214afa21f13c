import keras
import numpy as np
import pytest

from keras_vit.gradients import gradients

pytestmark = pytest.mark.backend


def test_gradients_of_each_value():
    a, b = np.array([1.0, 2.0], "float32"), np.array([[3.0], [4.0]], "float32")
    found = gradients(lambda values: keras.ops.sum(values[0] ** 2) * keras.ops.sum(values[1]), [a, b])
    np.testing.assert_allclose(found[0], 2 * a * 7)
    np.testing.assert_allclose(found[1], [[5.0], [5.0]])


def test_another_backend_is_named(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "abacus")
    with pytest.raises(NotImplementedError, match="backend 'abacus'"):
        gradients(keras.ops.sum, [np.ones(2, "float32")])
