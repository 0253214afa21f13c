import keras
import numpy as np
import pytest

from keras_vit import MLP
from keras_vit.layers.tokenwise import tokenwise

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 4), (2, 3, 5, 4)])
def test_equals_the_layer(shape):
    layer = keras.layers.Dense(6)
    x = RNG.normal(size=shape).astype("float32")
    layer.build(shape)
    found = tokenwise(layer, x)
    assert tuple(found.shape) == (*shape[:-1], 6)
    np.testing.assert_allclose(found, layer(x), atol=1e-6)


def test_batch_and_tokens_may_be_unknown():
    inputs = keras.Input((None, 4))
    model = keras.Model(inputs, MLP(8)(inputs))
    for tokens in (3, 5):
        assert model.predict(np.ones((2, tokens, 4), "float32"), verbose=0).shape == (2, tokens, 4)
