import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.models import whole_autoencoder
from keras_vit.models.inputs import metadata_of
from keras_vit.models.whole_autoencoder import SCALE, autoencoder, encoder_of, is_autoencoder, part_of
from keras_vit.traits import Traits
from tests.dits import small
from tests.latents import spread

pytestmark = pytest.mark.backend

SIZES = dict(widths=(4, 8), depth=1, groups=2, latent_channels=2, channels=1)
IMAGES = np.random.default_rng(0).uniform(0, 255, (2, 8, 12, 1)).astype("float32")


def trained(**options):
    model = spread(autoencoder(image_size=(8, 12), **SIZES, **options))
    metadata_of(model)[SCALE] = {"scaling_factor": 0.5, "shift_factor": 0.25}
    return model


@pytest.mark.parametrize("attention", [True, False])
def test_the_parts_are_the_whole(attention, tmp_path):
    model = trained(attention=attention)
    assert is_autoencoder(model) and not is_autoencoder(small()) and Traits(model).structure == "autoencoder"
    assert model.output_shape == (None, 8, 12, 1) and Traits(model).gives == "image"
    encoder, decoder = (part_of(model, part, metadata={"a": 1}) for part in ("encoder", "decoder"))
    mean, log = np.split(np.asarray(encoder(IMAGES)), 2, axis=-1)
    assert mean.shape == (2, 4, 6, 2)
    raw, raw_log = np.split(np.asarray(encoder_of(model)(IMAGES)), 2, axis=-1)
    np.testing.assert_allclose(mean, (raw - 0.25) * 0.5, atol=1e-5)
    np.testing.assert_allclose(log, raw_log + 2 * np.log(0.5), atol=1e-5)
    np.testing.assert_allclose(decoder(mean), model(IMAGES), atol=2e-2)  # of 255
    assert metadata_of(encoder)["a"] == metadata_of(decoder)["a"] == 1
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(part_of(again, "decoder")(mean), decoder(mean), atol=1e-4)


def test_parts_of_another_size_have_the_same_weights():
    model = trained(attention=False)
    larger = part_of(model, "encoder", image_size=(16, 24))
    wide = np.tile(IMAGES, (1, 2, 2, 1))
    assert larger(wide).shape == (2, 8, 12, 4)
    assert part_of(model, "decoder", latent_size=5).output_shape == (None, 10, 10, 1)


def test_weights_are_loaded_with_their_scale(tmp_path):
    model = trained(attention=False)
    model.save(tmp_path / "model.keras")
    fresh = autoencoder(image_size=(8, 12), attention=False, **SIZES)
    keras_vit.load_weights(fresh, tmp_path / "model.keras")
    np.testing.assert_array_equal(fresh(IMAGES), model(IMAGES))
    assert whole_autoencoder.scale_of(fresh) == whole_autoencoder.scale_of(model)
    with pytest.raises(ValueError, match="must have the sizes of the one to fill"):
        keras_vit.load_weights(autoencoder(image_size=(8, 12), **SIZES), tmp_path / "model.keras")


def test_without_a_scale_there_are_no_parts():
    model = autoencoder(image_size=8, **SIZES)
    assert whole_autoencoder.scale_of(model) == {}
    with pytest.raises(ValueError, match="must have a scale, which training measures. Received: 'autoencoder'"):
        part_of(model, "encoder")
