import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.models.autoencoder import latent_decoder, latent_encoder, takes_latents
from keras_vit.models.kinds import name_of
from keras_vit.utils.keras_private import shapes_only
from tests.latents import SIZES, spread

pytestmark = pytest.mark.backend


def test_sizes_of_the_published_one():
    """83,653,863 weights, as diffusers counts those of stabilityai/sd-vae-ft-mse."""
    counts = [shapes_only(lambda build=build: build(image_size=64).count_params()) for build in BUILD]
    assert counts == [34_163_664, 49_490_199] and sum(counts) == 83_653_863


BUILD = (latent_encoder, latent_decoder)


def test_latents_are_scaled_and_shifted():
    """With another scale and shift, the weights alone compute the same."""
    plain = {**SIZES, "scaling_factor": 1.0, "shift_factor": 0.0}
    images = np.random.default_rng(0).uniform(0, 255, (2, 8, 12, 3)).astype("float32")
    own, other = (spread(latent_encoder(image_size=(8, 12), **each)) for each in (SIZES, plain))
    (mean, log), (raw, raw_log) = (np.split(np.asarray(model(images)), 2, axis=-1) for model in (own, other))
    assert mean.shape == (2, 4, 6, 2) and np.std(raw) > 0.05
    np.testing.assert_allclose(mean, (raw - 0.25) * 0.5, atol=1e-5)
    np.testing.assert_allclose(log, raw_log + 2 * np.log(0.5), atol=1e-5)
    own, other = (spread(latent_decoder(latent_size=(4, 6), **each)) for each in (SIZES, plain))
    np.testing.assert_allclose(own(mean), other(raw), atol=1e-2)
    assert own.output_shape == (None, 8, 12, 3) and np.std(np.asarray(own(mean))) > 1


def test_the_padding_before_a_smaller_level_is_below_and_at_the_right():
    """The first row of pixels reaches the first row of latents alone; the last one the last."""
    model = spread(latent_encoder(image_size=16, **{**SIZES, "attention": False}))
    convolution = keras.Model(model.input, model.get_layer("down_0_conv").output)
    inside = convolution.get_layer("down_0_conv")
    x = np.random.default_rng(0).normal(size=(1, 16, 16, 4)).astype("float32")
    kernel, bias = map(np.asarray, inside.weights)
    padded = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)))
    expected = sum(padded[:, i : i + 16 : 2, j : j + 16 : 2] @ kernel[i, j] for i in range(3) for j in range(3)) + bias
    after = keras.Model(model.get_layer("down_0_pad").input, inside.output)
    np.testing.assert_allclose(after(x), expected, atol=1e-4)


def test_what_they_say_of_themselves():
    encoder, decoder = (build(image_size=8, **SIZES) for build in BUILD)
    assert (name_of(encoder), name_of(decoder)) == ("latents", "image")
    assert takes_latents(decoder) and not takes_latents(encoder) and not takes_latents(None)


def test_latents_are_no_images():
    with pytest.raises(ValueError, match="`model` must take images. Received: 'latent_decoder', a decoder, which"):
        keras_vit.preprocess(latent_decoder(latent_size=2, **SIZES), np.zeros((1, 8, 8, 3), "uint8"))


def test_a_saved_one_is_the_same(tmp_path):
    model = spread(latent_decoder(latent_size=2, **SIZES))
    model.save(tmp_path / "decoder.keras")
    again = keras.models.load_model(tmp_path / "decoder.keras")
    z = np.random.default_rng(1).normal(size=(1, 2, 2, 2)).astype("float32")
    np.testing.assert_array_equal(again(z), model(z))
    assert takes_latents(again) and name_of(again) == "image"


def test_attention_stays_in_float32():
    model = spread(latent_decoder(latent_size=4, **SIZES))
    half = latent_decoder(latent_size=4, dtype="mixed_bfloat16", **SIZES)
    half.set_weights(model.get_weights())
    assert half.get_layer("mid_attention").compute_dtype == "float32"
    z = np.random.default_rng(1).normal(size=(1, 4, 4, 2)).astype("float32")
    found, expected = np.asarray(half(z)), np.asarray(model(z))
    assert found.dtype == "float32" and 0 < np.abs(found - expected).max() < 0.1 * np.ptp(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Either `image_size` or `latent_size` must be passed. Received: image_size=None, latent_size=None"),
        ({"image_size": 8, "latent_size": 4}, "Either `image_size` or `latent_size` must be passed"),
        ({"image_size": 9}, "`image_size` must be a multiple of 2. Received: image_size=9"),
        ({"image_size": 8, "groups": 3}, "`groups` must divide all widths. Received: groups=3 with 4"),
        ({"image_size": 8, "dtype": "mixed_float16"}, "`dtype` must not be float16.* Received: mixed_float16"),
    ],
)
def test_bad_input(options, message):
    for build in BUILD:
        with pytest.raises(ValueError, match=message):
            build(**{**SIZES, **options})
