import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import explain

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 16, 12, 3)).astype("float32")


def hybrid(**options):
    stem = ((6, 2), (8, 2))
    sizes = dict(variant=None, width=16, depth=2, num_heads=2, patch_size=1, image_size=(16, 12))
    keras.utils.set_random_seed(0)
    model = keras_vit.vit(**{**sizes, "stem": stem, "num_classes": 3, **options})
    kernel = model.get_layer("head").kernel
    kernel.assign(np.random.default_rng(1).normal(size=kernel.shape))
    return model


def numbers(tensor):
    return keras.ops.convert_to_numpy(tensor).astype("float64")


@pytest.mark.parametrize("classes", [None, [2, 0]])
def test_formula(classes):
    """The mean gradient of a channel is the change of the logit if all its places are raised alike."""
    model = hybrid()
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    features = keras.Model(copy.input, copy.get_layer("stem").output)
    rest = keras.Model(features.output, copy.output)
    values, step = numbers(features(IMAGES)), 0.001
    rows = [*range(2)], numbers(model(IMAGES)).argmax(-1) if classes is None else classes
    weights = np.zeros((2, 8))
    for channel in range(8):
        raised = np.eye(8)[channel] * step
        difference = numbers(rest((values + raised).astype("float32"))) - numbers(
            rest((values - raised).astype("float32"))
        )
        weights[:, channel] = difference[rows] / (2 * step) / (4 * 3)
    expected = np.maximum((weights[:, None, None] * values).sum(-1), 0)
    found = explain.grad_cam(model, IMAGES, classes)
    assert found.shape == (2, 4, 3) and found.dtype == np.float32 and expected.max() > 0
    np.testing.assert_allclose(found, expected, atol=0.01 * expected.max())


def test_it_is_found_in_another_model_and_behind_a_softmax():
    inner = hybrid()
    outer = keras.Sequential([inner, keras.layers.Softmax()])
    np.testing.assert_allclose(explain.grad_cam(outer, IMAGES, 1), explain.grad_cam(inner, IMAGES, 1), atol=1e-6)


def test_one_logit_has_two_classes():
    model = hybrid(num_classes=1)
    up, down = (explain.grad_cam(model, IMAGES, each) for each in (1, 0))
    assert not (np.minimum(up, down) > 0).any() and max(up.max(), down.max()) > 0


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="must have a convolutional stem. Received: 'vit_mu_4', without"):
        explain.grad_cam(keras_vit.vit("mu/4", image_size=(16, 12), num_classes=3), IMAGES)
    with pytest.raises(ValueError, match=r"Received: 2 outside, such as \[7\]"):
        explain.grad_cam(hybrid(), IMAGES, 7)
