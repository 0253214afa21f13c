import itertools

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.generation.sampler import by_steps, drawn
from keras_vit.models.dit import INPUTS
from tests.dits import given_texts, of_texts, small
from tests.marks import first_everywhere, once

pytestmark = pytest.mark.backend

NOISE = np.random.default_rng(2).normal(size=(3, 8, 12, 1)).astype("float32")
LABELS = np.array([0, 2, 3])


def velocity(model, x, time, labels, guidance):
    """Returns the guided velocity, by two calls."""

    def of(labels):
        times = np.full(len(x), time, "float32")
        return np.asarray(model(dict(zip(INPUTS, (x.astype("float32"), times, labels.astype("int32"))))))

    none = of(np.full(len(x), 3))
    return none + guidance * (of(labels) - none)


@pytest.mark.parametrize("guidance", first_everywhere(2.5, 1.0))
def test_euler_is_the_sum_of_its_steps(guidance):
    model, x = small(), NOISE
    for i in range(3):
        x = x + velocity(model, x, i / 3, LABELS, guidance) / 3
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 3, guidance), x, atol=2e-4)
    in_python = by_steps(lambda given: model(given), 3, NOISE, LABELS, 3, guidance)
    np.testing.assert_allclose(in_python, x, atol=2e-4)


@once
def test_heun_corrects_all_steps_but_the_last():
    model, x = small(), NOISE
    for i in range(2):
        first = velocity(model, x, i / 3, LABELS, 2.0)
        second = velocity(model, x + first / 3, (i + 1) / 3, LABELS, 2.0)
        x = x + (first + second) / 6
    x = x + velocity(model, x, 2 / 3, LABELS, 2.0) / 3
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 3, 2.0, "heun"), x, atol=2e-4)
    path = drawn(model, NOISE, LABELS, 3, 2.0, "heun", path=True)
    assert path.shape == (3, 4, 8, 12, 1)
    np.testing.assert_array_equal(path[:, 0], NOISE)
    np.testing.assert_allclose(path[:, -1], x, atol=2e-4)


@once
def test_any_number_of_images_in_batches():
    model = small()
    whole = drawn(model, NOISE, LABELS, 2, 2.0)
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 2, 2.0, batch_size=2), whole, atol=1e-5)
    one = NOISE + velocity(model, NOISE, 0, LABELS, 1.0)
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 1, 1.0), one, atol=2e-4)


@once
def test_the_variance_of_published_models_is_left_out():
    """The second half of the output."""
    model, alone = small(out_channels=2), small()
    kernel, bias = model.get_layer("head").pixels.weights
    own = [np.asarray(weight) for weight in alone.get_layer("head").pixels.weights]
    for weight, value in zip((kernel, bias), own):
        both = np.stack([value, np.full_like(value, 9.0)], axis=-1)  # channels last
        weight.assign(both.reshape(weight.shape))
    for layer in alone.layers:
        if layer.name != "head":
            model.get_layer(layer.name).set_weights(layer.get_weights())
    model.get_layer("head").modulation.set_weights(alone.get_layer("head").modulation.get_weights())
    expected = drawn(alone, NOISE, LABELS, 2, 2.0)
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 2, 2.0), expected, atol=2e-4)


@once
def test_other_weights_are_not_drawn_with_a_function_of_before():
    model = small()
    before = drawn(model, NOISE, LABELS, 2, 2.0)
    keras_vit.add_lora(model, 2)
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 2, 2.0), before, atol=1e-4)
    for block in (model.get_layer("block_0"), model.get_layer("block_1")):
        block.attention.qkv.lora_kernel_b.assign(np.ones(block.attention.qkv.lora_kernel_b.shape))
    assert np.abs(drawn(model, NOISE, LABELS, 2, 2.0) - before).max() > 0.05


@once
@pytest.mark.parametrize("guidance", [1.0, 2.0])
def test_the_global_policy_does_not_matter(guidance):
    model = small()
    expected = drawn(model, NOISE, LABELS, 2, guidance)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        found = drawn(model, NOISE, LABELS, 2, guidance, batch_size=4)
    finally:
        keras.config.set_dtype_policy("float32")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("guidance", first_everywhere(2.5, 1.0))
def test_texts_are_guided_by_the_empty_text(guidance):
    model, texts, x = of_texts(), given_texts()["texts"], NOISE
    empty = np.repeat([[1, 0, 0, 0, 0]], 3, axis=0).astype("int32")
    for i in range(3):
        times = np.full(3, i / 3, "float32")
        given = {"images": x.astype("float32"), "times": times}
        with_text, without = (np.asarray(model({**given, "texts": ids})) for ids in (texts, empty))
        x = x + (without + guidance * (with_text - without)) / 3
    np.testing.assert_allclose(drawn(model, NOISE, texts, 3, guidance), x, atol=2e-4)
    in_python = by_steps(lambda given: model(given), empty[0], NOISE, texts, 3, guidance)
    np.testing.assert_allclose(in_python, x, atol=2e-4)
    alone = drawn(model, NOISE[1:2], texts[1:2], 3, guidance)
    np.testing.assert_allclose(alone, x[1:2], atol=2e-4)  # whatever is drawn next to it


@once
@pytest.mark.parametrize("method", ["euler", "heun"])
def test_steps_are_shifted_once_and_told_to_the_model(method):
    """The times that the model gets are those where the images are."""
    model, x = small(metadata={"gives": {"head": "velocity"}, "shift": 4.0}), NOISE
    places = [t / (t + 4 * (1 - t)) for t in (0, 1 / 3, 2 / 3, 1)]
    for i, (time, end) in enumerate(itertools.pairwise(places)):
        first = velocity(model, x, time, LABELS, 2.0)
        second = velocity(model, x + (end - time) * first, end, LABELS, 2.0) if method == "heun" and i < 2 else first
        x = x + (end - time) * (first + second) / 2
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 3, 2.0, method), x, atol=1e-3)
    if method == "euler":
        np.testing.assert_allclose(by_steps(lambda given: model(given), 3, NOISE, LABELS, 3, 2.0, 4.0), x, atol=1e-3)
