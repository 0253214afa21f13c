import contextlib

import keras
import numpy as np
import pytest

from keras_vit import TransformerBlock, vit
from keras_vit.training.remat import rematerialised

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (6, 8, 8, 3)).astype("float32"), np.arange(6) % 3


def built(scope):
    keras.utils.set_random_seed(0)
    with scope:
        model = vit("mu/4", image_size=8, num_classes=3, depth=2, stochastic_depth=0.5, dropout=0.2,
                    attention_dropout=0.1)  # fmt: skip
    model.get_layer("head").kernel.assign(np.linspace(-1, 1, 96).reshape(32, 3))
    return model


def test_training_is_the_same():
    """With every kind of random draw on: both passes must draw the same, once a step."""
    losses, ends, paths = [], [], []
    for scope in (contextlib.nullcontext(), rematerialised()):
        model = built(scope)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=True)
        losses.append([float(model.train_on_batch(IMAGES, LABELS)) for _ in range(3)])
        ends.append([keras.ops.convert_to_numpy(v) for v in model.variables])  # seeds included
        paths.append([v.path for v in model.weights])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6) and paths[0] == paths[1]
    for expected, found in zip(*ends, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def matrix_products(block, training):
    """Returns how many matrix products the gradient of a block takes."""
    x = np.ones((2, 5, 32), "float32")
    if keras.backend.backend() == "jax":
        import jax

        trained, other = ([v.value for v in vs] for vs in (block.trainable_variables, block.non_trainable_variables))
        loss = lambda trained: keras.ops.sum(block.stateless_call(trained, other, x, training=training)[0])  # noqa: E731
        return str(jax.make_jaxpr(jax.grad(loss))(trained)).count("dot_general")
    import tensorflow as tf

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            loss = keras.ops.sum(block(x, training=training))
        return tape.gradient(loss, block.trainable_variables)

    graph = gradient.get_concrete_function(tf.constant(x)).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return sum(node.op in ("MatMul", "BatchMatMulV2", "Einsum") for node in nodes)


def test_the_block_is_computed_again_in_training_alone():
    found = {}
    for name in ("block_0", "other"):
        with rematerialised():
            block = TransformerBlock(2, 64, dropout=0.1, attention_dropout=0.1, stochastic_depth=0.1, name=name)
        block.build((2, 5, 32))
        found[name] = [matrix_products(block, training) for training in (True, False)]
    assert found["other"] == [18, 18] and found["block_0"][1] == 18
    assert found["block_0"][0] in (23, 24)  # 6 in a forward pass; JAX does not need the last one again


def test_masks_are_taken():
    x = RNG.normal(size=(2, 5, 32)).astype("float32")
    with rematerialised():
        block = TransformerBlock(2, 64, name="block_0")
    expected = block(x, use_causal_mask=True, return_attention_scores=True)
    for a, b in zip(expected, block(x, use_causal_mask=True, return_attention_scores=True, training=True)):
        np.testing.assert_allclose(a, b, atol=1e-6)
