"""Explaining a ViT that is nested in another model."""

import functools

import keras
import numpy as np
import pytest

from keras_vit import attention_maps, attention_relevance, attention_rollout, explain, features, plots, vit
from tests.explain.models import IMAGES, tiny
from tests.marks import few

LARGE = np.random.default_rng(1).integers(0, 256, (3, 24, 16, 3)).astype("uint8")
SMALL = LARGE.reshape(3, 12, 2, 8, 2, 3).mean((2, 4)).astype("float32")
KERNEL = np.random.default_rng(2).normal(size=(32, 4))


@functools.cache
def headless():
    return vit("mu/4", image_size=(12, 8), num_classes=0, depth=3)


def plain(inner):
    """Returns a ViT with a head, all layers in one graph."""
    mine = keras.layers.Dense(4, name="mine")
    made = keras.Model(inner.input, mine(inner.output))
    mine.kernel.assign(KERNEL)
    return made


def nested(kind, inner):
    """Returns the same function with the ViT nested, of images that are twice as large for some kinds."""
    resize, mine = keras.layers.AveragePooling2D(2, dtype="float32"), keras.layers.Dense(4, name="mine")
    large, small = keras.Input((24, 16, 3)), keras.Input((12, 8, 3))
    made = {
        "functional": lambda: keras.Model(large, mine(inner(resize(large)))),
        "as it is": lambda: keras.Model(small, mine(inner(small))),
        "sequential": lambda: keras.Sequential(
            [keras.Input((24, 16, 3)), keras.layers.RandomFlip(), resize, inner, mine]
        ),
        "first": lambda: keras.Sequential([inner, mine]),
        "deep": lambda: keras.Sequential([large, resize, keras.Model(small, inner(small * 1.0)), mine]),
        "op": lambda: keras.Model(large, mine(inner(keras.ops.flip(keras.ops.flip(resize(large), 1), 1)) + 0.0)),
    }[kind]()
    mine.kernel.assign(KERNEL)
    return made


KINDS = ("functional", "as it is", "sequential", "first", "deep", "op")


@functools.cache
def flat():
    """Returns the same function, of all layers in one graph."""
    return plain(headless())


@pytest.fixture(params=KINDS, scope="module")
def pair(request):
    """A nested ViT with its images, and whether they are larger than those of the ViT."""
    large = request.param not in ("as it is", "first")
    return nested(request.param, headless()), LARGE if large else IMAGES, large


@pytest.mark.backend
def test_they_compute_the_same(pair):
    model, images, large = pair
    expected = keras.ops.convert_to_numpy(flat()(SMALL if large else IMAGES))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(model(images, training=False)), expected, atol=1e-4)


LOOKS = {
    "maps": attention_maps,
    "rollout": attention_rollout,
    "relevance": attention_relevance,
    "relevance of one": lambda model, images: attention_relevance(model, images, 2),
    "from": explain.attention_from,
    "distance": explain.attention_distance,
    "similarity": explain.token_similarity,
    "norms": explain.token_norms,
    "features": lambda model, images: features(model, [1])(images, training=False)["block_1"],
    "embed": explain.embed,
    "filters": lambda model, images: explain.patch_filters(model, 3),
    "positions": lambda model, images: explain.position_similarity(model),
}


@functools.cache
def expected_of(look, large):
    return keras.ops.convert_to_numpy(LOOKS[look](flat(), SMALL if large else IMAGES))


@few(8)
@pytest.mark.parametrize("look", LOOKS)
def test_every_function_finds_the_nested_vit(pair, look):
    model, images, large = pair
    before = nodes(model)
    found = keras.ops.convert_to_numpy(LOOKS[look](model, images))
    np.testing.assert_allclose(found, expected_of(look, large), rtol=1e-3, atol=1e-4)
    if "relevance" in look or "rollout" in look:
        assert nodes(model) == before  # the model is as it was


def nodes(model):
    return [len(layer._inbound_nodes) for layer in model._flatten_layers()]


def test_the_head_of_a_vit_that_is_nested_last():
    inner = tiny()
    outer = keras.Sequential([keras.Input((24, 16, 3)), keras.layers.AveragePooling2D(2, dtype="float32"), inner])
    assert explain.embed(outer, LARGE).shape == (3, 32)
    np.testing.assert_allclose(explain.embed(outer, LARGE), explain.embed(inner, SMALL), rtol=1e-3, atol=1e-4)
    expected = attention_relevance(inner, SMALL, 1)
    np.testing.assert_allclose(attention_relevance(outer, LARGE, 1), expected, rtol=1e-3, atol=1e-5)


def two_inputs(inside=False):
    """Returns a model of images and of something else; the ViT is nested, or all layers are in one graph."""
    inner, other = tiny(), keras.Input((2,), name="other")
    images = inner.input if inside else keras.Input((12, 8, 3))
    x = keras.layers.Concatenate()([inner.output if inside else inner(images), keras.layers.Dense(3)(other)])
    return inner, keras.Model([other, images], keras.layers.Dense(4)(x), name="two")


@pytest.mark.parametrize("inside", [True, False])
def test_a_model_of_several_inputs(inside):
    inner, model = two_inputs(inside)
    np.testing.assert_allclose(attention_maps(model, IMAGES), attention_maps(inner, IMAGES), atol=1e-6)
    np.testing.assert_allclose(attention_rollout(model, IMAGES), attention_rollout(inner, IMAGES), atol=1e-6)
    np.testing.assert_array_equal(*(np.asarray(features(m, [0])(IMAGES)["block_0"]) for m in (model, inner)))
    for look in (attention_relevance, lambda *given: plots.plot_worst(*given, [0, 1, 2])):
        with pytest.raises(ValueError, match=r"one input, the images.*2 inputs. Pass the part"):
            look(model, IMAGES)
    if inside:  # the layer called "head" sees the images alone
        assert explain.embed(model, IMAGES).shape == (3, 32)
    else:
        with pytest.raises(ValueError, match="2 inputs. Pass the part"):
            explain.embed(model, IMAGES)


def test_pictures_of_a_nested_vit():
    model = nested("sequential", headless())
    for figure in (plots.plot_attention(model, LARGE), plots.plot_worst(model, LARGE, [0, 1, 2])):
        figure.savefig("/dev/null", format="png")


def test_a_model_that_cannot_be_followed_is_one_clear_error():
    inner, images = tiny(), keras.Input((12, 8, 3))
    beside = keras.Model(images, inner(images) + keras.layers.Dense(5)(keras.layers.Flatten()(images)), name="beside")
    assert attention_maps(beside, IMAGES).shape == (3, 3, 2, 7, 7)
    with pytest.raises(ValueError, match="Received: 'beside', with a path around the ViT. .* pass the ViT itself"):
        attention_relevance(beside, IMAGES)
    frames = keras.Input((2, 12, 8, 3))
    film = keras.Model(frames, keras.layers.TimeDistributed(inner)(frames), name="film")
    with pytest.raises(ValueError, match="'film' does not call its ViT .* Pass the ViT itself"):
        attention_maps(film, np.zeros((1, 2, 12, 8, 3)))
    with pytest.raises(ValueError, match=r"\(batch, 24, 16, 3\)\. Received: shape=\(3, 12, 8, 3\)"):
        attention_maps(nested("functional", headless()), IMAGES)
    with pytest.raises(ValueError, match="Received: 'model'"):
        explain.position_similarity("model")


def test_values_are_left_to_what_comes_before():
    """A model of your own may take 0 to 1, and bring it to what the ViT wants."""
    inner = tiny()
    outer = keras.Sequential([keras.Input((12, 8, 3)), keras.layers.Rescaling(255.0), inner])
    np.testing.assert_allclose(attention_maps(outer, IMAGES / 255), attention_maps(inner, IMAGES), atol=1e-4)
    with pytest.raises(ValueError, match="multiply by 255"):
        attention_maps(keras.Sequential([inner, keras.layers.Softmax()]), IMAGES / 255)
