import json
import warnings

import keras
import numpy as np
import pytest

import keras_vit
from tests import clipsegs
from tests.checkpoints.helpers import unexpected
from tests.marks import slow, slow_on_jax

pytestmark = pytest.mark.backend
SIDE = clipsegs.SIDE
IMAGES = np.random.default_rng(0).integers(0, 256, (2, SIDE, SIDE, 3)).astype("float32")
IDS = np.array([[2, 5, 7, 1, 0, 0, 0, 0], [2, 9, 1, 0, 0, 0, 0, 0], [2, 3, 1, 0, 0, 0, 0, 0]], "int32")


def masks(model, images=IMAGES, ids=IDS):
    return np.asarray(model({"images": images, "texts": ids}, training=False))


@pytest.mark.parametrize("refined", [False, pytest.param(True, marks=slow)])
@pytest.mark.parametrize("at", [0, pytest.param(1, marks=slow)])
def test_masks_are_those_of_the_formulas(refined, at, tmp_path):
    arrays = clipsegs.folder_of(tmp_path, refined, conditional_layer=at)
    with warnings.catch_warnings(action="error"):
        model = keras_vit.from_checkpoint(tmp_path)
    embeddings, *tokens = map(np.asarray, model.get_layer("image")(IMAGES))
    assert embeddings.shape == (2, clipsegs.UNITS) and [x.shape for x in tokens] == [(2, 10, clipsegs.WIDTH)] * 2
    wanted = clipsegs.reference(arrays, tokens, np.asarray(model.get_layer("text")(IDS)), at)
    found = masks(model)
    assert found.shape == (2, *[12 if refined else SIDE] * 2, 3)
    np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_images_are_prepared_as_by_its_processor():
    rescale = clipsegs.shared().get_layer("image").get_layer("rescale")
    rule = rescale.metadata["evaluation"]
    assert (rule["resize"], rule["interpolation"], rule["antialias"]) == ("direct", "bilinear", True)
    np.testing.assert_allclose(np.ravel(rescale.mean), [0.485, 0.456, 0.406])


def test_parts_are_clips_towers(tmp_path):
    arrays = clipsegs.folder_of(tmp_path, end=2)
    with warnings.catch_warnings(action="error"):
        image = keras_vit.from_checkpoint(tmp_path, part="image")
        text = keras_vit.from_checkpoint(tmp_path, part="text")
    assert image.input_shape == (None, 16, 16, 3) and image.output_shape == (None, clipsegs.UNITS)
    kernel = np.asarray(image.get_layer("head").kernel)
    np.testing.assert_array_equal(kernel.T, arrays["clip.visual_projection.weight"])
    assert text.get_layer("pool").end is None  # the largest id: 2 is the mistake that was kept


def test_the_text_ends_at_the_id_of_the_configuration():
    assert clipsegs.shared().get_layer("text").get_layer("pool").end == 1


@slow_on_jax
def test_at_another_size(tmp_path):
    clipsegs.folder_of(tmp_path)
    model = keras_vit.from_checkpoint(tmp_path, image_size=(32, 16), dtype="mixed_bfloat16")
    found = model({"images": np.zeros((1, 32, 16, 3)), "texts": IDS}, training=False)
    assert tuple(found.shape) == (1, 32, 16, 3) and keras.backend.standardize_dtype(found.dtype) == "float32"


@slow
def test_own_files_are_read_whole_and_fill_a_model(tmp_path):
    model = clipsegs.shared()
    model.save(tmp_path / "clipseg.keras")
    again = keras_vit.from_checkpoint(tmp_path / "clipseg.keras")
    wanted = masks(model)
    np.testing.assert_allclose(masks(again), wanted, atol=1e-6)
    again.set_weights([weight * 0 for weight in again.get_weights()])
    keras_vit.load_weights(again, tmp_path / "clipseg.keras")
    np.testing.assert_allclose(masks(again), wanted, atol=1e-6)
    assert keras_vit.from_checkpoint(tmp_path / "clipseg.keras", part="text").name == "text"
    with warnings.catch_warnings(action="error", category=UserWarning):
        image = keras_vit.from_checkpoint(tmp_path / "clipseg.keras", part="image")
    embeddings = model.get_layer("image")(IMAGES)[0]
    np.testing.assert_allclose(np.asarray(image(IMAGES)), np.asarray(embeddings), atol=1e-5)


def test_bad_requests(tmp_path):
    arrays = clipsegs.folder_of(tmp_path)
    load, config = keras_vit.from_checkpoint, json.loads((tmp_path / "config.json").read_text())

    def stated(**changes):
        (tmp_path / "config.json").write_text(json.dumps(config | changes))
        load(tmp_path)

    def without(name):
        kept = {key: value for key, value in arrays.items() if key != name}
        clipsegs.safetensors.numpy.save_file(kept, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps(config))
        load(tmp_path)

    calls = [
        (lambda: load(tmp_path, pooling="gap"), "pass part='image'. Received: pooling='gap'"),
        (lambda: load(tmp_path, num_classes=3), "Received: num_classes=3"),
        (lambda: load(tmp_path, head="new"), "Received: head='new'"),
        (lambda: stated(conditional_layer=2), "`conditional_layer` must be from 0 to 1. Received: 2"),
        (lambda: stated(extract_layers=[0]), "must be 2 numbers of blocks, from 0 to 2, in .*Received: .0."),
        (lambda: stated(extract_layers=[0, 3]), "Received: .0, 3."),
        (lambda: without("decoder.film_add.bias"), "missing in the file: decoder.film_add.bias"),
        (lambda: without("decoder.reduces.1.weight"), "not in the model: decoder.*reduces.1.bias|must be 1 numbers"),
    ]
    assert not unexpected(calls)
