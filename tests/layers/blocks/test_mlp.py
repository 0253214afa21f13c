import math

import numpy as np
import pytest

from keras_vit import MLP
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_layer(tmp_path):
    run_layer_test(lambda dtype: MLP(16, dropout=0.1, dtype=dtype), (2, 5, 8), (2, 5, 8), ["fc1", "fc2"], tmp_path)


@pytest.mark.parametrize("gelu", ["tanh", "exact"])
def test_each_gelu_is_its_formula(gelu):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    layer = MLP(6, gelu=gelu)
    layer(x)
    hidden = x @ np.asarray(layer.fc1.kernel) * 2
    layer.fc1.kernel.assign(np.asarray(layer.fc1.kernel) * 2)
    if gelu == "exact":
        curve = 0.5 * hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))
    else:
        curve = 0.5 * hidden * (1 + np.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)))
    np.testing.assert_allclose(np.asarray(layer(x)), curve @ np.asarray(layer.fc2.kernel), atol=1e-5)


def test_unknown_gelu_is_named():
    with pytest.raises(ValueError, match="'swish'"):
        MLP(16, gelu="swish")


def before_activation(layer, x):
    return x @ np.asarray(layer.fc1.kernel) + np.asarray(layer.fc1.bias)


def test_gated():  # in the harness as a part of `TransformerBlock`
    layer = MLP(16, swiglu=True)
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    layer(x)
    gate, value = np.split(before_activation(layer, x), 2, axis=-1)
    expected = layer.fc2(gate / (1 + np.exp(-gate)) * value)
    np.testing.assert_allclose(np.asarray(layer(x)), np.asarray(expected), atol=1e-5)


def test_inner_norm():
    layer = MLP(16, swiglu=True, inner_norm=True, epsilon=1e-3)
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    layer(x)
    layer.norm.gamma.assign(np.arange(16) / 8)
    gate, value = np.split(before_activation(layer, x), 2, axis=-1)
    hidden = gate / (1 + np.exp(-gate)) * value
    centered = hidden - hidden.mean(-1, keepdims=True)
    normed = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-3) * np.arange(16) / 8
    np.testing.assert_allclose(np.asarray(layer(x)), np.asarray(layer.fc2(normed)), atol=1e-5)


def test_quick_gelu():
    layer = MLP(16, gelu="quick")
    x = np.random.default_rng(0).normal(size=(2, 8)).astype("float32")
    layer(x)
    hidden = before_activation(layer, x)
    expected = layer.fc2(hidden / (1 + np.exp(-1.702 * hidden)))
    np.testing.assert_allclose(np.asarray(layer(x)), np.asarray(expected), atol=1e-5)
