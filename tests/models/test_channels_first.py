"""Models are the same where keras.json says "channels_first": images have their channels last everywhere."""

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.data.augment.keras_layers import check_layers
from tests.marks import few, slow

SMALL = dict(image_size=32, width=16, depth=1, num_heads=2, mlp_dim=32)
CONVOLUTIONS = dict(SMALL, variant=None, patch_size=4, stem=((8, 1), (16, "pool", 2)))
MODELS = {
    "conv": lambda: keras_vit.vit("Ti/8", stem="conv", num_classes=4, **SMALL),
    "pool": lambda: keras_vit.vit(num_classes=4, **CONVOLUTIONS),
    "resnet": lambda: keras_vit.vit(None, patch_size=2, stem=keras_vit.ResNetStem((1, 1), width=32), **SMALL),
    "linear": lambda: keras_vit.Segment(classes=("a", "b", "c")).model(variant="Ti/8", **SMALL),
    "dpt": lambda: keras_vit.Segment(classes=("a", "b", "c"), head={"kind": "dpt", "width": 8}).model(
        variant="Ti/8", **{**SMALL, "depth": 4}
    ),
    "detect": lambda: keras_vit.Detect(classes=("a", "b"), most=5).model(variant="Ti/8", **{**SMALL, "depth": 4}),
    "restore": lambda: keras_vit.Restore(scale=2).model(**{**CONVOLUTIONS, "stem": ((8, 1),)}),
    "shipped": lambda: keras_vit.from_recipe("mnist", pretrained=True),
}


@pytest.fixture
def channels_first():
    keras.config.set_image_data_format("channels_first")
    yield
    keras.config.set_image_data_format("channels_last")


def outputs(made, weights=None):
    if weights is not None:
        made.set_weights(weights)
    images = np.random.default_rng(1).uniform(0, 255, (2, *made.input_shape[1:])).astype("float32")
    return np.asarray(made(images, training=False))


@slow
@few(7)
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_the_same(name, channels_first):
    first = MODELS[name]()
    keras.config.set_image_data_format("channels_last")
    last = MODELS[name]()
    rng = np.random.default_rng(0)
    weights = last.get_weights()
    if name != "shipped":
        weights = [w + 0.1 * rng.uniform(size=w.shape).astype("float32") for w in weights]
    wanted = outputs(last, weights)
    keras.config.set_image_data_format("channels_first")
    np.testing.assert_array_equal(outputs(first, None if name == "shipped" else weights), wanted)


def test_what_a_user_built_with_channels_first_is_refused(channels_first):
    convolution = keras.layers.Conv2D(8, 3, padding="same")
    with pytest.raises(ValueError, match="layers of `stem`. Received: 'conv2d.*' with channels_first"):
        keras_vit.vit("Ti/8", stem=convolution, **SMALL)
    with pytest.raises(ValueError, match="layers of `Augment.layers`. Received: 'mine' with channels_first"):
        check_layers([keras.layers.RandomGaussianBlur(name="mine")])
