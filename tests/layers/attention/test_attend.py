import keras
import numpy as np
import pytest
from keras import ops

from keras_vit import MultiHeadSelfAttention
from keras_vit.explain.relevance import gradients
from keras_vit.export.forms import ExportAttention
from keras_vit.layers.attention.attend import attend, fused_attention, joined_mask
from keras_vit.layers.attention.attention import NARROW

pytestmark = pytest.mark.backend
TENSORFLOW = keras.backend.backend() == "tensorflow"
on_tensorflow = pytest.mark.skipif(not TENSORFLOW, reason="the layer asks for it there alone")
with_kernel = pytest.mark.skipif(TENSORFLOW, reason="TensorFlow has no kernel")
RNG = np.random.default_rng(0)


def plain(query, key, value, scale):
    weights = ops.softmax(ops.einsum("bthd,bshd->bhts", query, key) * scale, axis=-1)
    return ops.einsum("bhts,bshd->bthd", weights, value)


@pytest.mark.parametrize("shape", [(2, 5, 3, 4), (1, 1, 1, 2), (3, 49, 4, 24)])
def test_equals_the_formula_and_its_gradient(shape):
    parts = [RNG.normal(size=shape).astype("float32") for _ in range(3)]
    upstream = RNG.normal(size=shape).astype("float32")
    results = []
    for attention in (plain, attend):
        results.append(np.asarray(attention(*parts, 0.7)))
        results.extend(gradients(lambda parts: ops.sum(attention(*parts, 0.7) * upstream), parts))  # noqa: B023
    for expected, found in zip(results[:4], results[4:]):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_scores_may_be_large():
    query = np.array([[[[300.0]], [[-300.0]]]], "float32")  # scores of +-90,000
    value = np.array([[[[1.0]], [[2.0]]]], "float32")
    np.testing.assert_allclose(attend(query, query, value, 1.0), value)
    found = gradients(lambda parts: ops.sum(attend(*parts, 1.0)), [query, query, value])
    assert all(np.isfinite(gradient).all() for gradient in found)


def test_half_precision_is_near():
    parts = [RNG.normal(size=(2, 17, 2, 8)).astype("float32") for _ in range(3)]
    halves = [ops.cast(part, "bfloat16") for part in parts]
    assert attend(*halves, 0.35).dtype == halves[0].dtype
    expected = gradients(lambda parts: ops.sum(attend(*parts, 0.35) ** 2), parts)
    found = gradients(
        lambda parts: ops.sum(ops.cast(attend(*[ops.cast(p, "bfloat16") for p in parts], 0.35), "float32") ** 2), parts
    )
    for a, b in zip(expected, found):
        assert np.abs(a - b).max() < 0.03 * np.abs(a).max()


@on_tensorflow
def test_the_layer_trains_as_it_infers():
    layer = MultiHeadSelfAttention(3)
    tokens = RNG.normal(size=(2, 7, 3 * NARROW)).astype("float32")
    layer.build(tokens.shape)

    def output_and_gradient(training):
        return [
            layer(tokens, training=training),
            *gradients(lambda x: ops.sum(layer(x[0], training=training) ** 2), [tokens]),
        ]

    for found, expected in zip(output_and_gradient(True), output_and_gradient(False)):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@on_tensorflow
@pytest.mark.parametrize("width, narrow", [(NARROW - 1, True), (NARROW, False)])
def test_narrow_heads_infer_by_it_unless_it_is_switched_off(width, narrow):
    import tensorflow as tf

    layer, tokens = MultiHeadSelfAttention(1), RNG.normal(size=(2, 7, width)).astype("float32")
    layer.build(tokens.shape)

    def softmax():
        graph = tf.function(lambda x: layer(x, training=False)).get_concrete_function(tf.TensorSpec((2, 7, width)))
        return any(operation.type == "Softmax" for operation in graph.graph.get_operations())

    before = layer(tokens)
    assert softmax() != narrow
    layer.__class__ = ExportAttention
    assert softmax()
    np.testing.assert_allclose(layer(tokens), before, atol=1e-5)


@on_tensorflow
def test_even_attention_to_many_values_of_100_does_not_overflow_float16():
    layer = MultiHeadSelfAttention(1, dtype="float16")
    layer.build((1, 1024, 4))
    layer.qkv.kernel.assign(np.repeat([[0.0, 0.0, 25.0]], 4, axis=0).repeat(4, axis=1))
    layer.proj.kernel.assign(np.eye(4))
    np.testing.assert_allclose(layer(np.ones((1, 1024, 4)), training=True), np.full((1, 1024, 4), 100.0), rtol=0.05)


@on_tensorflow
def test_gradient_of_the_gradient():
    import tensorflow as tf

    parts = [tf.constant(RNG.normal(size=(1, 4, 2, 3)), "float32") for _ in range(3)]
    found = []
    for attention in (plain, attend):
        with tf.GradientTape() as outer:
            outer.watch(parts)
            with tf.GradientTape() as inner:
                inner.watch(parts)
                loss = tf.reduce_sum(attention(*parts, 0.5) ** 2)
            penalty = sum(tf.reduce_sum(g**2) for g in inner.gradient(loss, parts))
        found.append(outer.gradient(penalty, parts))
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, atol=1e-4)


JAX = keras.backend.backend() == "jax"


def asked(monkeypatch, tokens, training, others=None):
    """Returns the `flash_attention` that Keras is asked for."""
    seen = []
    plain = keras.ops.dot_product_attention

    def watched(*args, flash_attention, **more):
        seen.append(flash_attention)
        return plain(*args, flash_attention=flash_attention, **more)

    monkeypatch.setattr(keras.ops, "dot_product_attention", watched)
    query, key = (
        np.random.default_rng(0).normal(size=(2, n, 2, 4)).astype("float32") for n in (tokens, others or tokens)
    )
    found = np.asarray(fused_attention(query, key, key, training=training))
    scores = np.exp(np.einsum("bthd,bshd->bhts", query, key))
    scores /= scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, np.einsum("bhts,bshd->bthd", scores, key), atol=1e-4)
    return seen[0]


@with_kernel
def test_jax_s_kernel_does_not_train_on_an_odd_number_of_tokens(monkeypatch):
    assert asked(monkeypatch, 5, True) is asked(monkeypatch, 4, True, others=5) is (False if JAX else None)
    assert asked(monkeypatch, 4, True) is asked(monkeypatch, 5, False) is None


@with_kernel
def test_the_kernel_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(keras.config, "is_flash_attention_enabled", lambda: False)
    assert asked(monkeypatch, 4, False) is False


ALL = np.ones((1, 2, 3), bool)


def test_without_any_there_is_none():
    assert joined_mask(None, False, 2, 3) is None


@pytest.mark.parametrize("given", [ALL, ALL[:, None]])
def test_both_are_joined_for_all_heads(given):
    found = np.asarray(joined_mask(given & [True, False, True], True, 2, 3))
    np.testing.assert_array_equal(found, [[[[True, False, False], [True, False, False]]]])
