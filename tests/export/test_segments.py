"""Models with a class and a mask for each query leave as every kind of file, and answer as before."""

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.export import runtimes
from keras_vit.models import segment_outputs
from tests import masks
from tests.marks import slow

pytestmark = [slow, pytest.mark.compiled]


@pytest.mark.parametrize("kind", ["tflite", "saved_model", "onnx", "openvino"])
def test_files(kind, tmp_path):
    if kind in ("onnx", "openvino"):
        pytest.importorskip({"onnx": "onnxruntime"}.get(kind, kind))
    model = masks.build()
    keras_vit.class_names(model, ["cat", "sky", "dog"])
    images = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3)).astype("float32")
    wanted = keras.ops.convert_to_numpy(model(images))
    path = tmp_path / {"tflite": "m.tflite", "saved_model": "m", "onnx": "m.onnx", "openvino": "m.xml"}[kind]
    report = getattr(keras_vit, f"export_{kind}")(model, path)
    assert report.max_abs_diff < 1e-4 * report.range and report.agreement > 0.999
    if kind == "tflite":
        assert not [operator for operator in report.operators if operator.startswith("Flex")]
    found = getattr(runtimes, kind)(path)[0](images)
    np.testing.assert_allclose(found, wanted, atol=1e-4 * np.ptp(wanted))
    logits, shapes = segment_outputs.unpacked(found, 3, (16, 16))
    assert logits.shape == (3, 4, 4) and shapes.shape == (3, 8, 8, 4)
