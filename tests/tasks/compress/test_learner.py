import numpy as np
import pytest
from keras import ops

from keras_vit.models.whole_autoencoder import autoencoder, encoder_of
from keras_vit.tasks.compress.learner import AutoencoderLearner
from tests.latents import spread

pytestmark = pytest.mark.backend

SIZES = dict(image_size=8, channels=1, widths=(4, 8), depth=1, groups=2, latent_channels=2)


def test_latents_are_drawn_in_training_alone():
    model = spread(autoencoder(**SIZES))
    learner = AutoencoderLearner(model)
    images = np.random.default_rng(0).uniform(0, 255, (3, 8, 8, 1)).astype("float32")
    assert learner.output_shape == (None, 8, 8, 2)
    found = np.asarray(learner(images, training=False))
    np.testing.assert_allclose(found[..., :1], model(images), atol=1e-4)
    mean, log = np.split(np.asarray(encoder_of(model)(images), "float64"), 2, axis=-1)
    divergence = 0.5 * (mean**2 + np.exp(log) - 1 - log).sum((1, 2, 3)) / 64
    np.testing.assert_allclose(found[..., 1], np.broadcast_to(divergence[:, None, None], (3, 8, 8)), rtol=1e-4)
    one, other = (np.asarray(learner(images, training=True)) for _ in range(2))
    assert (one[..., :1] != other[..., :1]).any() and (one[..., :1] != found[..., :1]).any()
    np.testing.assert_allclose(one[..., 1], found[..., 1], rtol=1e-5)


def test_all_weights_of_the_model_are_trained_and_no_others():
    model = autoencoder(**SIZES)
    learner = AutoencoderLearner(model)
    assert {id(v) for v in learner.trainable_variables} == {id(v) for v in model.trainable_variables}
    assert ops.shape(learner(np.zeros((2, 8, 8, 1), "float32"))) == (2, 8, 8, 2)


def test_variances_have_bounds():
    """Else `exp` overflows, and the loss is NaN."""
    model = spread(autoencoder(**SIZES))
    model.get_layer("projection").bias.assign([0.0, 0.0, 1e4, -1e4])
    found = np.asarray(AutoencoderLearner(model)(np.ones((2, 8, 8, 1), "float32"), training=True))
    assert np.isfinite(found).all()
