import numpy as np
import pytest

import keras_vit
from keras_vit.checkpoints.autoencoder import sizes_of
from keras_vit.models.inputs import metadata_of
from keras_vit.models.whole_autoencoder import SCALE, autoencoder

SIZES = dict(image_size=(8, 12), widths=(4, 8), depth=1, groups=2, latent_channels=2, channels=1)
IMAGES = np.random.default_rng(0).uniform(0, 255, (2, 8, 12, 1)).astype("float32")


def saved(path, factor=0.5):
    model = autoencoder(**SIZES)
    metadata_of(model)[SCALE] = {"scaling_factor": factor, "shift_factor": 0.25}
    model.save(path)
    return model


def test_parts_and_sizes_of_a_file(tmp_path):
    model = saved(tmp_path / "model.keras")
    assert sizes_of(tmp_path / "model.keras") == (2, 1, 2, (0.5, 0.25))
    encoder, decoder = (
        keras_vit.from_checkpoint(tmp_path / "model.keras", part=part) for part in ("encoder", "decoder")
    )
    mean = np.asarray(encoder(IMAGES))[..., :2]
    np.testing.assert_allclose(decoder(mean), model(IMAGES), atol=2e-2)
    assert metadata_of(encoder)["source"] == str(tmp_path / "model.keras")
    whole = keras_vit.from_pretrained(tmp_path / "model.keras")
    np.testing.assert_array_equal(whole(IMAGES), model(IMAGES))
    saved(tmp_path / "model.keras", 0.75)  # at the same place
    assert sizes_of(tmp_path / "model.keras").scale == (0.75, 0.25)


def test_the_one_that_ships_has_latents_of_7_x_7():
    encoder = keras_vit.from_pretrained("mnist_latents", part="encoder")
    assert encoder.output_shape == (None, 7, 7, 8) and sizes_of("mnist_latents")[:3] == (4, 1, 4)


def test_other_models_are_no_autoencoders(tmp_path):
    keras_vit.vit("mu/4", image_size=8, depth=1).save(tmp_path / "vit.keras")
    with pytest.raises(ValueError, match="must be an autoencoder of `Compress`.*vit.keras' with 'vit_mu_4'"):
        keras_vit.from_checkpoint(tmp_path / "vit.keras", part="encoder")
