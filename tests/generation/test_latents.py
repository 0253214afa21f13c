import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.generation import latents
from keras_vit.generation.sampler import drawn
from keras_vit.models.autoencoder import AUTOENCODER, latent_decoder
from tests.dits import small
from tests.latents import CLASSES, SIZES, pipeline, spread

pytestmark = pytest.mark.backend


def published(folder):
    return keras_vit.from_pretrained(pipeline(folder))


def by_hand(model, folder, labels, steps, guidance):
    """Removes noise in the words of the paper, with a loop, and decodes."""
    alphas = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))
    x = np.random.default_rng(0).standard_normal((len(labels), 8, 8, 4), "float32")
    stride = 1000 // steps
    for time in reversed(range(0, stride * steps, stride)):
        times = np.full(len(x), time, "float32")
        of = [model({"images": x, "times": times, "labels": np.int32(each)}) for each in (labels, [10] * len(x))]
        with_class, without = (np.asarray(each)[..., :4] for each in of)  # the other half is for the variance
        predicted = without + guidance * (with_class - without)
        before = alphas[time - stride] if time else 1.0
        image = (x - np.sqrt(1 - alphas[time]) * predicted) / np.sqrt(alphas[time])
        x = np.float32(np.sqrt(before) * image + np.sqrt(1 - before) * predicted)
    decoder = keras_vit.from_checkpoint(folder, part="decoder", latent_size=8)
    return np.asarray(decoder(x))


def test_a_published_model_draws_images(tmp_path):
    model = published(tmp_path / "dit")
    images = keras_vit.sample(model, [3, CLASSES[7]], steps=3, guidance=1.5)
    assert images.shape == (2, 16, 16, 3) and images.dtype == "uint8"
    expected = by_hand(model, tmp_path / "dit", [3, 7], 3, 1.5)
    assert np.abs(images - np.clip(np.rint(expected), 0, 255)).max() <= 1 and images.std() > 10
    path = keras_vit.sample(model, [3, 7], steps=3, guidance=1.5, path=True)
    assert path.shape == (2, 4, 16, 16, 3)
    np.testing.assert_array_equal(path[:, -1], images)
    corrected = keras_vit.sample(model, [3], steps=3, guidance=1.5, method="heun")
    assert (corrected != images[:1]).any()


def test_the_decoder_is_found_by_a_saved_model_or_missed(tmp_path):
    model = published(tmp_path / "dit")
    images = keras_vit.sample(model, [3], steps=2)
    model.save(tmp_path / "dit.keras")
    again = keras_vit.from_pretrained(tmp_path / "dit.keras")
    np.testing.assert_array_equal(keras_vit.sample(again, [3], steps=2), images)
    (tmp_path / "dit").rename(tmp_path / "moved")
    latents.decoder_at.cache_clear()
    with pytest.raises(
        ValueError, match="whose decoder is looked for at '.*dit': pass decoder=.*Received: There is no"
    ):
        keras_vit.sample(again, [3], steps=2)
    for decoder in (tmp_path / "moved", str(tmp_path / "moved" / "vae")):
        np.testing.assert_array_equal(keras_vit.sample(again, [3], steps=2, decoder=decoder), images)


def test_decoders_that_do_not_fit(tmp_path):
    model = published(tmp_path / "dit")
    wrong = latent_decoder(latent_size=4, **SIZES)
    with pytest.raises(ValueError, match=r"`decoder` must be one of latents of \(8, 8, 4\).*takes \(4, 4, 2\)"):
        keras_vit.sample(model, [3], decoder=wrong)
    with pytest.raises(ValueError, match="Received: 'dit_cu"):
        keras_vit.sample(model, [3], decoder=small())
    with pytest.raises(TypeError, match="`decoder` must be a path. Received: decoder=3"):
        keras_vit.sample(model, [3], decoder=3)
    with pytest.raises(ValueError, match="`steps` must be at most 1000"):
        keras_vit.sample(model, [3], steps=1001)


def test_latents_are_decoded_a_few_at_a_time(monkeypatch):
    model = spread(latent_decoder(latent_size=(4, 6), **SIZES))
    z = np.random.default_rng(0).normal(size=(5, 4, 6, 2)).astype("float32")
    expected = np.asarray(model(z)) / 127.5 - 1
    sizes, run = [], keras.Model.predict_on_batch
    monkeypatch.setattr(keras.Model, "predict_on_batch", lambda self, x: sizes.append(len(x)) or run(self, x))
    monkeypatch.setattr(latents, "PIXELS", 2 * 8 * 12)
    np.testing.assert_allclose(latents.decoded(model, z), expected, atol=1e-4)
    assert sizes == [2, 2, 2]


def test_a_velocity_in_latents(monkeypatch):
    """What a model of one's own draws is decoded too; a model of images needs no decoder."""
    model, decoder = small(channels=2), spread(latent_decoder(latent_size=(8, 12), **SIZES))
    images = keras_vit.sample(model, [0, 1], steps=2, decoder=decoder)
    noise = np.random.default_rng(0).standard_normal((2, 8, 12, 2), "float32")
    expected = np.clip(np.rint(np.asarray(decoder(drawn(model, noise, np.array([0, 1]), 2, 2.0)))), 0, 255)
    assert images.shape == (2, 16, 24, 3) and np.abs(images - expected).max() <= 1
    assert latents.decoder_of(small()) is None
    model.get_layer("rescale").metadata[AUTOENCODER] = "nowhere"
    with pytest.raises(ValueError, match="looked for at 'nowhere'"):
        keras_vit.sample(model, [0], steps=1)
