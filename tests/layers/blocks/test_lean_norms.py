import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_vit import vit
from keras_vit.explain.relevance import gradients
from keras_vit.layers.blocks import lean_norms
from keras_vit.layers.blocks.lean_norms import LayerNorm, RMSNorm

if keras.backend.backend() != "jax":
    pytest.skip("other backends keep what they like", allow_module_level=True)
import jax

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
PLAIN = {LayerNorm: keras.layers.LayerNormalization, RMSNorm: keras.layers.RMSNormalization}


@pytest.mark.parametrize("shape", [(7, 8), (2, 3, 5, 8)])
@pytest.mark.parametrize(
    "kind, options", [(LayerNorm, {}), (LayerNorm, {"center": False, "scale": False}), (RMSNorm, {})]
)
def test_equals_keras_and_its_gradients(kind, options, shape):
    arrays = [RNG.normal(1.0, 2.0, shape), *RNG.normal(1.0, 0.3, (2, 8))]
    upstream = RNG.normal(size=shape).astype("float32")
    layers = [make(epsilon=0.1, **options) for make in (kind, PLAIN[kind])]
    for layer in layers:
        layer.build(shape)
        layer.set_weights(arrays[1:][: len(layer.weights)])

    def slopes(layer):
        def loss(x):
            return ops.sum(layer(x[0], training=True) * upstream)

        return gradients(loss, [arrays[0].astype("float32")])[0]

    layers[1].call, plain = (lambda x, training=None: plain(x)), layers[1].call
    x = ops.convert_to_tensor(arrays[0].astype("float32"))
    np.testing.assert_array_equal(*(ops.convert_to_numpy(layer(x, training=True)) for layer in layers))
    np.testing.assert_allclose(*map(slopes, layers), atol=2e-6)


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
    monkeypatch.setattr(lean_norms, "keeps_less", lambda: False)
    for found, wanted in zip(slopes, jax.grad(loss)(weights), strict=True):
        np.testing.assert_allclose(found, wanted, atol=0.02 * float(ops.max(ops.abs(wanted))) + 1e-6)
    assert less < kept() - 6
