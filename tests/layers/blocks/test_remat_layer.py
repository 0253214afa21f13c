import keras
import numpy as np
import pytest

from keras_vit import TransformerBlock

pytestmark = pytest.mark.backend
SCOPE = keras.RematScope("list_of_layers", layer_names=["block"])


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
    for name in ("block", "other"):
        with SCOPE:
            block = TransformerBlock(2, 64, dropout=0.1, attention_dropout=0.1, stochastic_depth=0.1, name=name)
        block.build((2, 5, 32))
        found[name] = [matrix_products(block, training) for training in (True, False)]
    assert found["other"] == [18, 18] and found["block"][1] == 18
    assert found["block"][0] in (23, 24)  # 6 in a forward pass; JAX does not need the last one again


def test_masks_are_taken():
    x = np.random.default_rng(0).normal(size=(2, 5, 32)).astype("float32")
    with SCOPE:
        block = TransformerBlock(2, 64, name="block")
    expected = block(x, use_causal_mask=True, return_attention_scores=True)
    for a, b in zip(expected, block(x, use_causal_mask=True, return_attention_scores=True, training=True)):
        np.testing.assert_allclose(a, b, atol=1e-6)
