import keras
import numpy as np
import pytest

from keras_vit.layers.functional import Model
from keras_vit.models.open_detector import detection_heads, features_of, has_classes, is_open_detector, of_classes
from tests import owls
from tests.marks import slow_on_jax
from tests.towers import two_towers

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, owls.SIDE, owls.SIDE, 3)).astype("float32")
IDS = np.array([[2, 5, 7, 1, 0, 0, 0, 0], [0] * 8], "int32")


@pytest.mark.parametrize("two", [True, pytest.param(False, marks=slow_on_jax)])
def test_towers_and_heads_are_joined(two, tmp_path):
    model = owls.shared(two)
    found = model({"images": IMAGES, "texts": IDS}, training=False)
    shapes = {name: tuple(each.shape) for name, each in found.items()}
    assert shapes == {"boxes": (3, 4, 4), "logits": (3, 4, 2)} | ({"objectness": (3, 4)} if two else {})
    assert (np.asarray(found["logits"])[..., 1] == np.finfo("float32").min).all()
    assert is_open_detector(model) and not is_open_detector(two_towers())
    if not two:
        return
    model.save(tmp_path / "owl.keras")
    again = keras.models.load_model(tmp_path / "owl.keras")({"images": IMAGES, "texts": IDS}, training=False)
    for name, value in found.items():
        np.testing.assert_allclose(np.asarray(again[name]), np.asarray(value), atol=1e-6)


def test_features_are_normalized_products_of_patches_and_class_token():
    model = owls.shared()
    tokens = RNG.normal(size=(2, 5, owls.WIDTH)).astype("float32")
    found = np.asarray(features_of(model.get_layer("heads"), tokens))
    x = tokens[:, 1:] * tokens[:, :1]
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    norm = model.get_layer("heads").get_layer("features")
    np.testing.assert_allclose(found, x * np.asarray(norm.gamma) + np.asarray(norm.beta), atol=1e-4)


@slow_on_jax
def test_boxes_are_not_ruined_in_16_bits():
    outputs = []
    for dtype in ("float32", "mixed_bfloat16"):
        model = owls.small(True, dtype=dtype)
        model.set_weights([weight * 0.4 for weight in model.get_weights()])
        outputs.append(model({"images": IMAGES, "texts": IDS}, training=False))
    exact, found = ({name: np.asarray(x) for name, x in each.items()} for each in outputs)
    assert {x.dtype.name for x in found.values()} == {"float32"}
    for name, tolerance in (("boxes", 0.01), ("objectness", 0.05)):
        np.testing.assert_allclose(found[name], exact[name], atol=tolerance)
    np.testing.assert_allclose(found["logits"][..., 0], exact["logits"][..., 0], atol=0.05)


def test_heads_have_the_public_names():
    heads = detection_heads(width=8, grid=(2, 2), units=6, length=4, objectness=True)
    inside = {"class_token", "patch_tokens", "product", "features", "places", "objectness", "logits"}
    assert {layer.name for layer in heads.layers} == inside | {"tokens", "queries", "texts"}
    assert "places/dense0/kernel" in {weight.path for weight in heads.weights}


def test_classes_of_a_detector_can_change_and_weights_are_copies():
    model = owls.shared()
    image, heads = model.get_layer("image"), model.get_layer("heads")
    features = features_of(heads, image.outputs[0])
    boxes, vectors = heads.get_layer("places")(features), RNG.normal(size=(3, owls.UNITS)).astype("float32")
    first = of_classes(image.inputs[0], features, boxes, heads.get_layer("logits"), vectors, 9)
    assert has_classes(first) and not has_classes(model) and first.output_shape == (None, 4, 7)
    parts = [first.get_layer(name).output for name in ("features", "places")]
    second = of_classes(first.inputs[0], *parts, first.get_layer("logits"), vectors[1:], 2, "second")
    assert second.output_shape == (None, 2, 6) and second.name == "second"
    logits = [np.asarray(Model(each.inputs, each.get_layer("logits").output)(IMAGES)) for each in (first, second)]
    np.testing.assert_allclose(logits[1], logits[0][..., 1:], atol=1e-6)
    second.set_weights([weight * 0 for weight in second.get_weights()])
    assert np.asarray(first.get_layer("logits").vectors).any()
