"""A model that returns images, in every format."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Restore
from keras_vit.export import export_onnx, export_saved_model, export_tflite, runtimes
from tests.export.small import shaken
from tests.marks import slow

GRAY = np.random.default_rng(0).integers(0, 256, (20, 8, 12, 1)).repeat(3, -1).astype("uint8")


@pytest.fixture(scope="module")
def model():
    task = Restore(scale=2, luma=True, head_depth=1)
    small = dict(variant="mu/4", stem=((8, 1, 1), (8, 1)), patch_size=4, image_size=(8, 12), depth=1)
    return shaken(task.model(**small))


def test_tflite_returns_pixels(model, tmp_path):
    report = export_tflite(model, tmp_path / "model.tflite", images=GRAY)
    assert report.same == "pixel values" and report.agreement > 0.98
    assert "; same pixel values " in str(report) and "top-1" not in str(report)
    run = runtimes.opened(tmp_path / "model.tflite", 1).get_signature_runner("serve")
    pixels = run(images=GRAY[:1].astype("float32"))["pixels"]
    np.testing.assert_allclose(pixels, np.asarray(model(GRAY[:1])), atol=0.1)


@slow
@pytest.mark.parametrize("quantize", ["float16", "dynamic", "int8"])
def test_smaller_files_return_nearly_the_same_of_gray_images_too(quantize, model, tmp_path):
    more = {"calibration": GRAY} if quantize == "int8" else {}
    report = export_tflite(model, tmp_path / "model.tflite", quantize=quantize, images=GRAY, **more)
    assert report.mean_abs_diff < 0.02 * report.range


@slow
def test_int8_of_a_branch_that_is_always_zero(tmp_path):
    small = dict(variant="mu/4", stem=((8, 1, 2),), patch_size=4, image_size=(8, 12), depth=1)
    model = shaken(Restore(scale=2).model(**small))
    model.get_layer("stem").convs[1].bias.assign(np.full(8, -1e3))
    report = export_tflite(model, tmp_path / "model.tflite", quantize="int8", images=GRAY, calibration=GRAY)
    assert report.mean_abs_diff < 0.02 * report.range


@slow
def test_saved_model_and_onnx_return_pixels(model, tmp_path):
    import tensorflow as tf

    export_saved_model(model, tmp_path / "saved", images=GRAY)
    pixels = tf.saved_model.load(str(tmp_path / "saved")).signatures["serving_default"](tf.constant(GRAY, "float32"))
    np.testing.assert_allclose(pixels["pixels"], np.asarray(model(GRAY)), atol=0.1)
    onnx = pytest.importorskip("onnxruntime")
    export_onnx(model, tmp_path / "model.onnx", images=GRAY)
    session = onnx.InferenceSession(str(tmp_path / "model.onnx"))
    assert [output.name for output in session.get_outputs()] == ["pixels"]


def test_an_image_has_no_probabilities(model, tmp_path):
    with pytest.raises(ValueError, match="An image has no probabilities. Received: probabilities=True with 'vit_mu_4'"):
        export_tflite(model, tmp_path / "model.tflite", probabilities=True)
