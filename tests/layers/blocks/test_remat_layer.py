import keras
import numpy as np
import pytest

from keras_vit import AdaptiveBlock, DecoderBlock, TransformerBlock

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


def test_all_tensors_of_floats_get_their_gradients():
    """Also the condition and the context of a block; the mask of the context is of booleans."""
    rng = np.random.default_rng(0)
    x, condition, context = (rng.normal(size=shape).astype("float32") for shape in ((2, 5, 8), (2, 6), (2, 3, 4)))
    mask = keras.ops.convert_to_tensor(np.array([[[[1, 1, 0]]], [[[1, 0, 0]]]], "bool"))
    with SCOPE:
        block = AdaptiveBlock(2, 12, name="block")
    plain = AdaptiveBlock(2, 12)
    for each in (block, plain):
        each(x, condition, context)
        each.set_weights([np.random.default_rng(1).normal(size=weight.shape) for weight in each.weights])
    for found, expected in zip(*(gradients(each, mask, x, condition, context) for each in (block, plain))):
        assert np.abs(expected).max() > 0
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


def gradients(block, mask, *tensors):
    """Returns the gradients of a block's output by its tensors."""
    if keras.backend.backend() == "jax":
        import jax

        weights = [[v.value for v in vs] for vs in (block.trainable_variables, block.non_trainable_variables)]
        loss = lambda *given: keras.ops.sum(block.stateless_call(*weights, *given, mask, training=True)[0] ** 2)  # noqa: E731
        return jax.grad(loss, argnums=(0, 1, 2))(*tensors)
    import tensorflow as tf

    tensors = [*map(tf.constant, tensors)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        loss = keras.ops.sum(block(*tensors, mask, training=True) ** 2)
    return tape.gradient(loss, tensors)


def test_a_decoder_block_in_a_graph():
    """Keras's own checkpointing takes no keyword arguments there."""
    x, context = (np.random.default_rng(i).normal(size=(2, n, 8)).astype("float32") for i, n in enumerate((5, 3)))
    with SCOPE:
        block = DecoderBlock(2, 12, name="block")
    plain = DecoderBlock(2, 12)
    for each in (block, plain):
        each(x, context)
    plain.set_weights(block.get_weights())
    if keras.backend.backend() == "jax":
        import jax

        weights = [[v.value for v in vs] for vs in (block.trainable_variables, block.non_trainable_variables)]
        found, expected = (
            jax.grad(lambda c: keras.ops.sum(each.stateless_call(*weights, x, c, training=True)[0] ** 2))(context)  # noqa: B023
            for each in (block, plain)
        )
    else:
        import tensorflow as tf

        @tf.function
        def gradient(each, context):
            with tf.GradientTape() as tape:
                tape.watch(context)
                loss = keras.ops.sum(each(x, context, use_causal_mask=True, training=True) ** 2)
            return tape.gradient(loss, context)

        found, expected = (gradient(each, tf.constant(context)) for each in (block, plain))
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
