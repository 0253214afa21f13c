import keras
import numpy as np
import pytest

from keras_vit import ConvStem, ResNetStem, vit
from keras_vit.utils.keras_private import shapes_only
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

IMAGE = keras.Input((224, 224, 3))
TWO_OUTPUTS = keras.Model(IMAGE, [keras.layers.ReLU()(IMAGE), keras.layers.ReLU()(IMAGE)], name="two")


@pytest.mark.parametrize(
    "arguments, filters, patch",
    [
        (dict(variant="Ti/4", stem=((8, 2), (16, 1))), 16, (2, 2)),
        (dict(variant="Ti/4", stem=((8, 2, 2), (16, 1))), 16, (2, 2)),
        (dict(variant="Ti/4", stem="conv"), 192, (1, 1)),
        (dict(variant="Ti/4", stem=ConvStem((8,))), 8, (2, 2)),
        (dict(variant="Ti", patch_size=2, stem=ConvStem((8,))), 8, (2, 2)),
        (dict(variant="R26+S/32", image_size=(64, 96)), 2048, (1, 1)),
        (dict(variant="R+Ti/16", image_size=(64, 96)), 64, (8, 8)),
        (dict(variant="S/32", stem=ResNetStem((1, 1)), image_size=64), 512, (4, 4)),
    ],
)
def test_stems(arguments, filters, patch):
    model = shapes_only(lambda: vit(**{"image_size": 32, "depth": 1, **arguments}))
    assert [layer.name for layer in model.layers][:5] == ["images", "rescale", "stem", "patches", "encoder"]
    assert model.get_layer("patches").patch_size == patch and model.get_layer("stem").output.shape[-1] == filters


@slow_on_jax
def test_a_keras_network_up_to_a_layer_is_a_stem(tmp_path):
    network = keras.applications.MobileNetV2(input_shape=(32, 48, 3), weights=None, include_top=False, alpha=0.35)
    stem = keras.Model(network.input, network.get_layer("block_3_expand_relu").output)
    model = vit("mu", patch_size=1, image_size=(32, 48), num_classes=3, stem=stem)
    assert model.get_layer("encoder").output.shape[1] == 1 + 8 * 12
    assert model.get_layer("stem").layers[1] is network.layers[1]
    model.save(tmp_path / "model.keras")
    images = np.random.default_rng(0).integers(0, 256, (2, 32, 48, 3))
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(np.asarray(model(images)), np.asarray(loaded(images)), atol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(variant="Ti/16", stem="resnet"), "stem='resnet'"),
        (dict(variant="Ti/14", stem="conv"), "patches of 14"),
        (
            dict(variant="Ti/16", stem=ConvStem((8,) * 5)),
            "16 pixels do not fit .* 7 x 7 of .* 224 x 224",
        ),
        (dict(variant="Ti/16", stem=keras.layers.Flatten()), r"output shape \(None, 150528\)"),
        (dict(variant="Ti", stem=ConvStem((8,))), "Received: 'Ti'"),
        (dict(variant="Ti/16", stem=((8, 2), 16)), "pairs.*16"),
        (dict(variant="Ti/16", stem=TWO_OUTPUTS), "one output. Received: 'two'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        vit(**arguments)
