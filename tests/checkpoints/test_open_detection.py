import warnings

import numpy as np
import pytest

import keras_vit
from tests import owls
from tests.checkpoints.helpers import unexpected
from tests.marks import slow, slow_on_jax

pytestmark = pytest.mark.backend
IMAGES = np.random.default_rng(0).integers(0, 256, (2, owls.SIDE, owls.SIDE, 3)).astype("float32")
IDS = np.array([[2, 5, 7, 11, 0, 0, 0, 0], [0] * 8, [2, 9, 11, 0, 0, 0, 0, 0]], "int32")


def outputs(model, images=IMAGES):
    found = model({"images": images, "texts": IDS}, training=False)
    return {name: np.asarray(value) for name, value in found.items()}


@pytest.mark.parametrize("two", [True, pytest.param(False, marks=slow_on_jax)])
def test_heads_answer_as_the_formulas(two, tmp_path):
    arrays = owls.folder_of(tmp_path, two)
    with warnings.catch_warnings(action="error"):
        model = keras_vit.from_checkpoint(tmp_path)
    image, text = model.get_layer("image"), model.get_layer("text")
    wanted = owls.reference(arrays, np.asarray(image(IMAGES)), np.asarray(text(IDS)), IDS)
    found = outputs(model)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, atol=2e-5, err_msg=name)
    rule = image.get_layer("rescale").metadata["evaluation"]
    assert (rule["resize"], rule["interpolation"]) == (("pad", "bilinear") if two else ("direct", "bicubic"))


def test_parts_are_clips_towers(tmp_path):
    arrays = owls.folder_of(tmp_path)
    image = keras_vit.from_checkpoint(tmp_path, part="image")
    assert image.output_shape == (None, owls.UNITS) and image.get_layer("norm_pre")
    np.testing.assert_array_equal(
        np.asarray(image.get_layer("head").kernel).T, arrays["owlvit.visual_projection.weight"]
    )
    text = keras_vit.from_checkpoint(tmp_path, part="text")
    assert text.get_layer("pool").end is None  # the largest id, whatever the configuration says
    both = keras_vit.from_checkpoint(tmp_path, part="both")
    np.testing.assert_array_equal(np.asarray(both.get_layer("text")(IDS)), np.asarray(text(IDS)))


@slow_on_jax
def test_at_another_size(tmp_path):
    owls.folder_of(tmp_path)
    model = keras_vit.from_checkpoint(tmp_path, image_size=(24, 16), dtype="mixed_bfloat16")
    assert model.get_layer("heads").get_layer("places").grid == (3, 2)
    found = outputs(model, np.zeros((1, 24, 16, 3)))
    assert found["boxes"].shape == (1, 6, 4) and found["logits"].dtype == "float32"


@slow_on_jax
def test_own_files_are_read_whole(tmp_path):
    model = owls.shared(True)
    model.save(tmp_path / "owl.keras")
    again = keras_vit.from_checkpoint(tmp_path / "owl.keras")
    np.testing.assert_allclose(outputs(again)["logits"], outputs(model)["logits"], atol=1e-6)


@slow
def test_own_files_fill_a_model_and_have_parts(tmp_path):
    model, other = owls.shared(True), owls.small(True, seed=1)
    model.save(tmp_path / "owl.keras")
    assert keras_vit.from_checkpoint(tmp_path / "owl.keras", part="text").name == "text"
    assert keras_vit.from_checkpoint(tmp_path / "owl.keras", part="image").output_shape == (None, 5, owls.WIDTH)
    keras_vit.load_weights(other, tmp_path / "owl.keras")
    np.testing.assert_allclose(outputs(other)["boxes"], outputs(model)["boxes"], atol=1e-6)


def test_bad_requests(tmp_path):
    arrays = owls.folder_of(tmp_path)

    def without(name):
        def load():
            (tmp_path / "less").mkdir(exist_ok=True)
            owls.folder_of(tmp_path / "less")
            kept = {key: value for key, value in arrays.items() if key != name}
            owls.safetensors.numpy.save_file(kept, tmp_path / "less" / "model.safetensors")
            keras_vit.from_checkpoint(tmp_path / "less")

        return load

    calls = [
        (lambda: keras_vit.from_checkpoint(tmp_path, pooling="gap"), "pass part='image'. Received: pooling='gap'"),
        (lambda: keras_vit.from_checkpoint(tmp_path, num_classes=3), "Received: num_classes=3"),
        (lambda: keras_vit.from_checkpoint(tmp_path, head="new"), "Received: head='new'"),
        (without("box_head.dense1.bias"), "missing in the file: box_head.dense1.bias"),
        (without("layer_norm.weight"), "needs a tensor 'layer_norm.weight' with 1 axes. Received"),
    ]
    assert not unexpected(calls)


def test_a_file_that_does_not_match_is_refused_before_a_model_is_built(tmp_path):
    owls.folder_of(tmp_path)
    arrays = owls.arrays_of() | {"class_head.dense9.weight": np.zeros((2, 2), "float32")}
    owls.safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="not in the model: class_head.dense9.weight"):
        keras_vit.from_checkpoint(tmp_path)
