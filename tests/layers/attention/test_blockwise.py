import keras
import numpy as np
import pytest
from keras import ops

from keras_vit import MultiHeadSelfAttention, vit
from keras_vit.explain.relevance import gradients
from keras_vit.export.forms import export_copy
from keras_vit.layers.attention import blockwise
from tests.marks import few, once, slow, slow_on_jax

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
SAMPLES, TOKENS, OTHERS, HEADS, WIDTH = 2, 7, 9, 3, 4


def drawn(*shape):
    return RNG.normal(size=shape).astype("float32")


QUERY, UPSTREAM = drawn(SAMPLES, TOKENS, HEADS, WIDTH), drawn(SAMPLES, TOKENS, HEADS, WIDTH)
KEY, VALUE = drawn(SAMPLES, OTHERS, HEADS, WIDTH), drawn(SAMPLES, OTHERS, HEADS, WIDTH)


@slow
@few(1)
@pytest.mark.compiled
@pytest.mark.parametrize("jit_compile", [True, False])
def test_a_compiled_layer_trains_as_one_that_holds_all_scores(monkeypatch, jit_compile):
    def trained(blocks):
        monkeypatch.setattr(MultiHeadSelfAttention, "takes_blocks", blocks)
        keras.utils.set_random_seed(0)
        inputs = keras.Input((blockwise.LONG, 8))
        grid = {"grid": (32, 32)}
        model = keras.Model(inputs, MultiHeadSelfAttention(2, rotary=grid, relative=grid)(inputs))
        model.compile("sgd", "mse", jit_compile=jit_compile)
        tokens = np.random.default_rng(0).normal(size=(2, blockwise.LONG, 8)).astype("float32")
        losses = [float(model.train_on_batch(tokens, tokens[:, ::-1])) for _ in range(3)]
        return [*losses, *map(np.asarray, model.get_weights())]

    monkeypatch.setattr(blockwise, "BLOCK", 400)
    for found, expected in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@slow_on_jax
@pytest.mark.parametrize("block", [100, 4])
def test_dropout_is_the_same_in_the_gradient(monkeypatch, block):
    monkeypatch.setattr(blockwise, "BLOCK", block)

    def output(parts):
        return blockwise.blockwise_attention(
            *map(ops.convert_to_tensor, parts), dropout=(0.3, keras.random.SeedGenerator(7))
        )

    parts = [QUERY, KEY, VALUE]
    found = gradients(lambda parts: ops.sum(output(parts) * UPSTREAM), parts)
    for i, part in enumerate(parts):
        step = 1e-2 * drawn(*part.shape)
        up, down = (
            float(ops.sum(output([*parts[:i], part + sign * step, *parts[i + 1 :]]) * UPSTREAM)) for sign in (1, -1)
        )
        np.testing.assert_allclose(np.sum(np.asarray(found[i]) * step), (up - down) / 2, rtol=2e-2, atol=2e-3)


def test_dropout_keeps_the_mean():
    many = [np.repeat(part, 60, axis=0) for part in (QUERY, KEY, np.ones_like(VALUE))]
    made = blockwise.blockwise_attention(
        *map(ops.convert_to_tensor, many), dropout=(0.3, keras.random.SeedGenerator(1))
    )
    made = np.asarray(made)
    assert abs(made.mean() - 1) < 0.03 and made.std() > 0.2


def test_the_layer_takes_blocks_where_they_serve(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "keras_vit.layers.attention.attention.blockwise_attention",
        lambda query, *_: asked.append(query.shape[1]) or query,
    )
    layer = MultiHeadSelfAttention(1)
    short, long = (np.zeros((1, count, 4), "float32") for count in (blockwise.LONG - 1, blockwise.LONG))
    layer(short)
    layer(long, return_attention_scores=True)
    layer(long, bias=np.zeros((1, 1, blockwise.LONG, blockwise.LONG), "float32"))
    MultiHeadSelfAttention(1, dtype="float16")(long)
    assert asked == []
    layer(long)
    layer(long, use_causal_mask=True)
    MultiHeadSelfAttention(1, attention_dropout=0.1)(long, training=True)
    assert asked == [blockwise.LONG] * 3


@once
def test_the_layer_is_the_same_in_blocks(monkeypatch):
    """Eagerly too, for masks and biases of fewer axes, for no image, and in the gradient of the gradient."""
    import tensorflow as tf

    monkeypatch.setattr(blockwise, "LONG", 12)
    monkeypatch.setattr(blockwise, "BLOCK", 8)
    layer = MultiHeadSelfAttention(2, relative={"grid": (3, 4)})
    x, bias = tf.constant(drawn(2, 12, 8)), drawn(12)[None]
    mask = RNG.random((1, 12, 12)) > 0.3

    def results():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                loss = tf.reduce_sum(layer(x, attention_mask=mask, bias=bias) ** 2)
            penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)
        of_both = map(tf.convert_to_tensor, outer.gradient(penalty, [x, layer.distances.table]))
        return layer(x, training=True), layer(x[:0]), penalty, *of_both

    found = results()
    layer.takes_blocks = False
    for one, other in zip(found, results(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@once
def test_an_export_holds_all_scores():
    model = vit(image_size=(24, 24), patch_size=1, width=8, depth=1, num_heads=1, num_classes=2)
    layers = {type(layer.attention).takes_blocks for layer in export_copy(model).layers if hasattr(layer, "attention")}
    assert layers == {False}
