import keras
import numpy as np
import pytest
from keras import ops

from keras_vit.explain.relevance import gradients
from keras_vit.layers.blocks.gelu import recomputed_gelu

pytestmark = pytest.mark.backend


@pytest.mark.parametrize("approximate", [True, False])
def test_equals_keras_and_its_gradient(approximate):
    x = np.concatenate([np.linspace(-9, 9, 361), [-1e4, -30.0, 0.0, 30.0, 1e4]]).astype("float32")
    upstream = np.random.default_rng(0).normal(size=x.shape).astype("float32")
    found, expected = (
        [gelu(ops.convert_to_tensor(x), approximate=approximate)]
        + gradients(lambda x: ops.sum(gelu(x[0], approximate=approximate) * upstream), [x])  # noqa: B023
        for gelu in (recomputed_gelu, keras.activations.gelu)
    )
    np.testing.assert_array_equal(*map(np.asarray, (found[0], expected[0])))
    np.testing.assert_allclose(found[1], expected[1], atol=1e-5)
