import random

import keras
import numpy as np
import pytest

from keras_vit import PatchEncoder, Patches
from keras_vit.utils import resampling
from tests.harness import run_layer_test
from tests.marks import few

pytestmark = pytest.mark.backend


@few(3)
@pytest.mark.parametrize(
    "options, tokens",
    [
        (dict(), 7),
        (dict(distillation_token=True, registers=2), 10),
        (dict(class_token=False, position="sincos1d"), 6),
        (dict(class_position=False, registers=1), 8),
        (dict(position="sincos2d", grid=(2, 3)), 7),
        (dict(position=None), 7),
        (dict(patch_norm=True), 7),
    ],
)
def test_layer(options, tokens, tmp_path):
    run_layer_test(
        lambda dtype: PatchEncoder(8, **options, dtype=dtype), (2, 6, 5), (2, tokens, 8), ["projection"], tmp_path
    )


def test_projection_equals_a_convolution():
    images = np.random.default_rng(0).normal(size=(2, 8, 12, 3)).astype("float32")
    encoder = PatchEncoder(16, class_token=False, position=None)
    tokens = encoder(Patches((4, 3))(images))
    convolution = keras.layers.Conv2D(16, (4, 3), strides=(4, 3))
    convolution.build(images.shape)
    convolution.kernel.assign(keras.ops.reshape(encoder.projection.kernel, (4, 3, 3, 16)))
    np.testing.assert_allclose(np.reshape(convolution(images), (2, 8, 16)), np.asarray(tokens), atol=1e-5)


@pytest.mark.parametrize("rms_norm", [False, True])
def test_patches_are_normalized_before_positions(rms_norm):
    patches = np.random.default_rng(0).normal(size=(2, 6, 5)).astype("float32")
    encoder = PatchEncoder(8, patch_norm=True, rms_norm=rms_norm, epsilon=1e-3, class_token=False)
    encoder(patches)
    x = patches @ np.asarray(encoder.projection.kernel)
    x = x if rms_norm else x - x.mean(-1, keepdims=True)
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) + np.asarray(encoder.position_embedding)
    np.testing.assert_allclose(np.asarray(encoder(patches)), expected, atol=1e-5)


def test_positions_cover_the_prefix_only_when_asked():
    patches = np.zeros((1, 4, 3), "float32")
    covering, plain = PatchEncoder(8, registers=1), PatchEncoder(8, registers=1, class_position=False)
    covering(patches), plain(patches)
    assert covering.position_embedding.shape == (1, 6, 8)
    assert plain.position_embedding.shape == (1, 4, 8)
    np.testing.assert_array_equal(np.asarray(plain(patches))[:, 1], np.asarray(plain.prefix[1])[:, 0])


def test_every_weight_has_a_draw_of_its_own():
    def drawn():
        encoder = PatchEncoder(8, distillation_token=True, registers=1)
        encoder(np.zeros((1, 4, 3), "float32"))
        return [np.asarray(w) for w in (encoder.prefix[1], encoder.prefix[2], encoder.position_embedding[:, :1])]

    one, two = drawn(), drawn()
    assert len({w.tobytes() for w in one + two}) == 6


def test_fixed_positions_are_the_published_tables():
    patches = np.zeros((1, 6, 3), "float32")
    np.testing.assert_allclose(PatchEncoder(8, position="sincos1d")(patches)[0], resampling.sincos_1d(7, 8), atol=1e-6)
    tokens = PatchEncoder(8, position="sincos2d", grid=(2, 3))(patches)[0]
    np.testing.assert_allclose(tokens[1:], resampling.sincos_2d((2, 3), 8), atol=1e-6)
    np.testing.assert_array_equal(tokens[0], np.zeros(8))


@pytest.mark.parametrize(
    "options, patches, message",
    [
        (dict(position="rotary"), 4, "rotary"),
        (dict(registers=-1), 4, "registers=-1"),
        (dict(dropout=1.0), 4, "dropout=1.0"),
        (dict(position="sincos2d"), 6, "square number of patches. Received: 6"),
        (dict(grid=(2, 2)), 6, r"all 6 patches. Received: grid=\(2, 2\)"),
    ],
)
def test_bad_arguments_are_named(options, patches, message):
    with pytest.raises(ValueError, match=message):
        PatchEncoder(8, **options)(np.zeros((1, patches, 3), "float32"))


@pytest.mark.parametrize("position", ["learned", "sincos1d", "sincos2d", None])
@pytest.mark.parametrize("class_position", [True, False])
def test_fewer_patches_have_resampled_positions(position, class_position):
    patches = keras.random.normal((2, 24, 5), seed=0)
    options = dict(position=position, class_position=class_position, registers=1)
    layer = PatchEncoder(8, grid=(4, 6), **options)
    layer(patches)
    small = PatchEncoder(8, grid=(2, 3), **options)
    small(patches[:, :6])
    weights = layer.get_weights()
    if position is not None:
        table = keras.ops.convert_to_numpy(layer.position_embedding)[0]
        prefix = len(table) - 24
        resized = np.concatenate(
            [table[:prefix], resampling.resize_grid(table[prefix:], (4, 6), (2, 3), "jax-linear")]
        )[None]
        if position == "learned":
            weights = [resized if w.shape == (1, *table.shape) else w for w in weights]
        else:
            small.position_embedding = resized
    small.set_weights(weights)
    np.testing.assert_allclose(layer(patches[:, :6]), small(patches[:, :6]), atol=1e-6)


def test_patches_of_other_proportions_are_refused():
    layer = PatchEncoder(8, grid=(4, 6))
    layer(keras.ops.zeros((1, 24, 5)))
    with pytest.raises(ValueError, match="8 patches have no grid with the proportions of 4 x 6"):
        layer(keras.ops.zeros((1, 8, 5)))


def test_unused_tokens_draw_their_seeds():
    """The initial weights of later layers depend on them, and must stay those of the first version."""
    drawn = set()
    for options in ({}, {"class_token": False}, {"distillation_token": True}, {"registers": 3}):
        keras.utils.set_random_seed(0)
        PatchEncoder(8, position=None, **options).build((None, 4, 12))
        drawn.add(random.random())  # initializers take their seeds from here
    assert len(drawn) == 1
