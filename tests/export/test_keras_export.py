"""Keras's own `model.export` on models of this package: its files return what the models do."""

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.export.small import IMAGES, tiny
from tests.marks import few

OPTIONS = [
    dict(),
    dict(tokens={"registers": 2}, block={"layer_scale": 0.1}),
    dict(position="sincos2d"),
    dict(stem=keras.layers.Conv2D(8, 2, 2)),
]


def of_litert(path, images):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(path)
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, images.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, images)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def of_onnx(path, images):
    session = pytest.importorskip("onnxruntime").InferenceSession(path)
    return session.run(None, {session.get_inputs()[0].name: images})[0]


def of_openvino(path, images):
    core = pytest.importorskip("openvino").Core()
    return core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(images)[0]


def of_saved_model(path, images):
    import tensorflow as tf

    loaded = tf.saved_model.load(path)
    return loaded.serve(images).numpy()


@pytest.mark.parametrize(
    "form, name, run",
    [
        ("litert", "m.tflite", of_litert),
        ("onnx", "m.onnx", of_onnx),
        ("openvino", "m.xml", of_openvino),
        ("tf_saved_model", "m", of_saved_model),
    ],
)
@few(1)
@pytest.mark.parametrize("options", OPTIONS)
def test_files_of_keras_agree(form, name, run, options, tmp_path):
    if form == "onnx":
        pytest.importorskip("tf2onnx")
    if form == "openvino":
        pytest.importorskip("openvino")
    model = tiny(**options)
    images, path = np.asarray(IMAGES[:3], "float32"), str(tmp_path / name)
    expected = model(images).numpy()  # Keras asks for a call before it writes ONNX
    model.export(path, format=form, verbose=False)
    np.testing.assert_allclose(run(path, images), expected, rtol=1e-4, atol=1e-4)


def test_onnx_of_keras_with_exact_gelu_does_not_load(tmp_path):
    """docs/export.md says so; `export_onnx` writes files that load."""
    pytest.importorskip("tf2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, path = tiny(block={"gelu": "exact"}), str(tmp_path / "m.onnx")
    model(IMAGES[:1])
    model.export(path, format="onnx", verbose=False)
    with pytest.raises(Exception, match="No Op registered for Erfc"):
        onnxruntime.InferenceSession(path)
