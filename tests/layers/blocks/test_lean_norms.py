import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_vit import vit
from keras_vit.layers.blocks import lean_norms, norms

if keras.backend.backend() != "jax":
    pytest.skip("other backends keep what they like", allow_module_level=True)
import jax

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
KINDS = [
    lambda: keras.layers.LayerNormalization(epsilon=0.1),
    lambda: keras.layers.LayerNormalization(epsilon=0.1, center=False, scale=False),
    lambda: keras.layers.RMSNormalization(epsilon=0.1),
]


@pytest.mark.parametrize("shape", [(7, 8), (2, 3, 5, 8)])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_keras_and_its_gradients(kind, shape):
    layer, x = kind(), RNG.normal(1.0, 2.0, shape).astype("float32")
    upstream = RNG.normal(size=shape).astype("float32")
    layer.build(shape)
    layer.set_weights(RNG.normal(1.0, 0.3, (2, 8))[: len(layer.weights)])
    weights = [v.value for v in layer.trainable_variables]

    def stated(call):
        def loss(weights, x):
            with keras.StatelessScope([*zip(layer.trainable_variables, weights)]):
                return ops.sum(call(x) * upstream)

        return jax.grad(loss, (0, 1))(weights, x)

    np.testing.assert_array_equal(lean_norms.lean_norm(layer, x), layer(x))
    found, wanted = (jax.tree.leaves(stated(call)) for call in (lambda x: lean_norms.lean_norm(layer, x), layer))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"norm": {"rms_norm": True}}, {"block": {"norm_order": "post"}}])
def test_a_model_trains_alike_and_keeps_no_tokens_in_single_precision(options, monkeypatch):
    keras.utils.set_random_seed(0)
    shape = dict(image_size=8, patch_size=4, width=16, depth=2, num_heads=2, mlp_dim=24, num_classes=3)
    model = vit(None, **shape, **options, dtype="mixed_bfloat16")
    weights, others = ([v.value for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables))
    images = RNG.integers(0, 256, (3, 8, 8, 3)).astype("float32")

    def loss(weights):
        return ops.sum(ops.sin(model.stateless_call(weights, others, images, training=True)[0]))

    def kept():
        arrays = jax.tree.leaves(jax.eval_shape(lambda weights: jax.vjp(loss, weights)[1], weights))
        return sum(math.prod(array.shape) == 3 * 5 * 16 and array.dtype == "float32" for array in arrays)

    slopes, less = jax.grad(loss)(weights), kept()
    monkeypatch.setattr(norms, "keeps_less", lambda: False)
    for found, wanted in zip(slopes, jax.grad(loss)(weights), strict=True):
        np.testing.assert_allclose(found, wanted, atol=0.02 * float(ops.max(ops.abs(wanted))) + 1e-6)
    assert less < kept() - 6
