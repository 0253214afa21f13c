import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from keras_vit import attention_relevance, from_recipe, vit
from keras_vit.explain import attention_maps
from keras_vit.explain.relevance import gradients
from keras_vit.models.remat import rematerialized
from tests.explain.models import IMAGES, KINDS, shared
from tests.marks import few, slow, slow_on_jax


def one_block():
    """Returns a model whose logits are linear in its attention: one block, no norm behind it, no MLP's branch."""
    model = vit("mu/4", image_size=(12, 8), num_classes=5, depth=1, final_norm=None)
    rng = np.random.default_rng(1)
    model.get_layer("head").kernel.assign(rng.normal(size=(32, 5)))
    model.get_layer("block_0").mlp.fc2.kernel.assign(np.zeros((128, 32)))
    return model


@slow_on_jax
@pytest.mark.backend
def test_relevance_by_hand():
    model = one_block()
    block = model.get_layer("block_0")
    tokens = block.norm1(keras.Model(model.input, block.input)(IMAGES))
    values = keras.ops.convert_to_numpy(block.attention.qkv(tokens)).reshape(3, 7, 3, 2, 16)[:, :, 2]
    to_width = keras.ops.convert_to_numpy(block.attention.proj.kernel).reshape(2, 16, 32)
    head = keras.ops.convert_to_numpy(model.get_layer("head").kernel)[:, [4, 0, 2]].T  # (batch, width)
    slope = np.einsum("bw,hdw,bthd->bht", head, to_width, values)  # by the class token's scores: all others are unread
    scores = attention_maps(model, IMAGES)[0][:, :, 0]
    expected = np.maximum(slope * scores, 0).mean(1)[:, 1:].reshape(3, 3, 2)
    np.testing.assert_allclose(attention_relevance(model, IMAGES, [4, 0, 2]), expected, atol=1e-5)


@slow_on_jax
@pytest.mark.backend
@pytest.mark.parametrize("activation", [None, "sigmoid"])
def test_one_output_is_of_two_classes(activation):
    """Class 1 is what raises the logit, class 0 what lowers it: as of two logits, one of them its negative."""
    single = vit("mu/4", image_size=(12, 8), num_classes=1, depth=2)
    kernel = np.random.default_rng(1).normal(size=(32, 1))
    single.get_layer("head").kernel.assign(kernel)
    double = vit("mu/4", image_size=(12, 8), num_classes=2, depth=2)
    for layer in single.layers[:-1]:
        double.get_layer(layer.name).set_weights(layer.get_weights())
    double.get_layer("head").kernel.assign(np.hstack([-kernel, kernel]))
    wanted = [attention_relevance(double, IMAGES, i) for i in (0, 1)]
    answers = (keras.ops.convert_to_numpy(single(IMAGES))[:, 0] > 0).astype(int)
    likeliest = attention_relevance(double, IMAGES, answers)
    if activation:
        single = keras.Sequential([single, keras.layers.Activation(activation)])
        single.build((None, 12, 8, 3))
    for i in (0, 1):
        np.testing.assert_allclose(attention_relevance(single, IMAGES, i), wanted[i], atol=1e-5)
    np.testing.assert_allclose(attention_relevance(single, IMAGES), likeliest, atol=1e-5)
    with pytest.raises(ValueError, match="from 0 to 1. Received: 3 outside"):
        attention_relevance(single, IMAGES, 2)


def nodes(model):
    return [len(layer._inbound_nodes) for layer in model.layers]


@few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_classes(kind):
    model = shared(kind)
    before, logits = nodes(model), keras.ops.convert_to_numpy(model(IMAGES))
    found = attention_relevance(model, IMAGES)
    assert found.shape == (3, 3, 2) and found.dtype == np.float32 and found.min() >= 0 and found.max() > 0
    np.testing.assert_array_equal(found, attention_relevance(model, IMAGES, logits.argmax(-1)))
    assert np.abs(found - attention_relevance(model, IMAGES, (logits.argmax(-1) + 1) % 5)).max() > 0
    assert nodes(model) == before
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(model(IMAGES)), logits)


def test_many_classes_need_no_memory_for_all_pairs():
    model = vit("mu/4", image_size=8, num_classes=21_843)
    tracemalloc.start()
    try:
        attention_relevance(model, np.zeros((2, 8, 8, 3)), [0, 21_842])
        assert tracemalloc.get_traced_memory()[1] < 21_843**2 / 4
    finally:
        tracemalloc.stop()


def test_an_image_does_not_change_anothers():
    model = shared("gap")
    images = np.concatenate([IMAGES] * 4)  # more than are computed together
    together = attention_relevance(model, images, 3)
    np.testing.assert_allclose(together[7], attention_relevance(model, images[7:8], 3)[0], rtol=1e-4, atol=1e-7)


@pytest.mark.backend
def test_several_threads_at_once():
    model = shared("token")
    expected = attention_relevance(model, IMAGES, 1)
    with ThreadPoolExecutor(3) as pool:
        together = [pool.submit(attention_relevance, model, IMAGES, 1) for _ in range(6)]
    for found in together:
        np.testing.assert_allclose(found.result(), expected, rtol=1e-5)


def test_blocks_with_gradient_checkpointing():
    with rematerialized():
        model = one_block()
    plain = one_block()
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(attention_relevance(model, IMAGES, 1), attention_relevance(plain, IMAGES, 1), atol=1e-6)


@slow
def test_relevance_points_at_the_digit():
    from sklearn.datasets import load_digits

    rng, digits, count = np.random.default_rng(0), load_digits(), 64
    images = np.zeros((count, 28, 28, 1))
    for image, digit in zip(images, digits.images):
        row, column = rng.integers(0, 13, 2)
        image[row : row + 16, column : column + 16, 0] = np.kron(digit, np.ones((2, 2))) * 255 / 16
    model = from_recipe("mnist", pretrained=True)
    found = attention_relevance(model, images)
    on_digit = images.reshape(count, 7, 4, 7, 4).max((2, 4)) > 60
    points = np.eye(49)[found.reshape(count, 49).argmax(1)].reshape(count, 7, 7)
    assert (points * on_digit).sum((1, 2)).mean() >= 0.75  # by chance 0.27
    assert (found * on_digit).sum() / found.sum() > 2 * on_digit.mean()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="from 0 to 4. Received: 3 outside, such as \\[5\\]"):
        attention_relevance(shared("token"), IMAGES, 5)
    with pytest.raises(ValueError, match="3 images and 2 classes"):
        attention_relevance(shared("token"), IMAGES, [1, 2])
    with pytest.raises(ValueError, match="multiply by 255"):
        attention_relevance(shared("token"), IMAGES / 255)
    for pooling in ("none", "gap"):
        with pytest.raises(ValueError, match=r"one logit for each class\. Received: .*ends in 'pool'"):
            attention_relevance(vit("mu/4", image_size=(12, 8), num_classes=0, depth=1, pooling=pooling), IMAGES)
    with pytest.raises(ValueError, match=r"one logit for each class\. Received: .*ends in 'pre_logits'"):
        attention_relevance(vit("mu/4", image_size=(12, 8), num_classes=0, representation_size=8), IMAGES)


@pytest.mark.backend
def test_gradients_of_each_value():
    a, b = np.array([1.0, 2.0], "float32"), np.array([[3.0], [4.0]], "float32")
    found = gradients(lambda values: keras.ops.sum(values[0] ** 2) * keras.ops.sum(values[1]), [a, b])
    np.testing.assert_allclose(found[0], 2 * a * 7)
    np.testing.assert_allclose(found[1], [[5.0], [5.0]])


@pytest.mark.backend
def test_another_backend_is_named(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "abacus")
    with pytest.raises(NotImplementedError, match="backend 'abacus'"):
        gradients(keras.ops.sum, [np.ones(2, "float32")])


@pytest.mark.backend
def test_relevance_is_that_of_the_logits_behind_a_softmax_that_is_sure():
    model = shared("token")
    wanted = attention_relevance(model, IMAGES, 2)
    with_softmax = vit("mu/4", image_size=(12, 8), num_classes=5, depth=3)
    dense = with_softmax.get_layer("head")
    sure = keras.layers.Dense(5, "softmax", name="sure")
    single = keras.Model(with_softmax.input, sure(dense.input))
    single.set_weights([30 * w if "head" in v.path else w for v, w in zip(model.weights, model.get_weights())])
    ends = {
        "layer": keras.Sequential([model, keras.layers.Softmax()]),
        "activation": keras.Sequential([model, keras.layers.Activation("softmax")]),
        "operation": keras.Model(model.input, keras.ops.softmax(model.output)),
        "nested": keras.Sequential([keras.Sequential([model, keras.layers.Softmax()])]),
        "head": keras.Sequential([model, keras.Sequential([keras.Input((5,)), keras.layers.Softmax()])]),
    }
    for each in ends.values():
        each.build((None, 12, 8, 3))
        np.testing.assert_allclose(attention_relevance(each, IMAGES, 2), wanted, rtol=1e-4, atol=1e-6)
    assert keras.ops.convert_to_numpy(single(IMAGES)).max(-1).min() > 0.99
    assert attention_relevance(single, IMAGES, 2).max() > wanted.max()
