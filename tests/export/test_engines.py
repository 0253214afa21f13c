import subprocess
import sys
import types

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("openvino")

from keras_vit.export import engines, predictor
from tests.export.small import IMAGES, tiny
from tests.marks import slow


def test_an_operation_that_xla_has_not_is_computed_without_it():
    class Opaque(keras.layers.Layer):
        def call(self, x):
            import tensorflow as tf

            return tf.ensure_shape(tf.numpy_function(lambda value: value, [x], "float32"), x.shape)

    model = tiny()
    model = keras.Model(model.input, Opaque()(model.output))
    (outputs,) = engines.by_keras(model, "float32", len(IMAGES))(IMAGES)
    np.testing.assert_allclose(outputs, model.predict(IMAGES, verbose=0), atol=1e-5)


def test_a_tensor_twice_and_the_input_itself_are_for_keras():
    model = tiny()
    for outputs, why in (
        ({"a": model.output, "b": model.output}, "it returns one tensor as two outputs"),
        ([model.input, model.output], "it returns its input as an output"),
    ):
        several = keras.Model(model.input, outputs)
        with pytest.warns(
            UserWarning, match=f"Predicting by keras, without OpenVINO: OpenVINO cannot compute .*: {why}"
        ):
            found = predictor(several, batch_size=4).predict(IMAGES)
        for each, expected in zip(keras.tree.flatten(found), keras.tree.flatten(several.predict(IMAGES, verbose=0))):
            np.testing.assert_allclose(each, expected, atol=1e-5)


@pytest.mark.parametrize("engine", engines.BY)
def test_any_number_of_images_in_any_type(engine):
    model = tiny()
    compute, expected = engines.BY[engine](model, "float32", 3), model.predict(IMAGES, verbose=0)
    for count in (1, 3, 5):
        for dtype in ("uint8", "int64", "float64"):
            (outputs,) = compute(IMAGES[:count].astype(dtype))
            np.testing.assert_allclose(outputs, expected[:count], rtol=0, atol=1e-5 * np.ptp(expected))


def test_tflite_has_one_output_and_no_operators_of_tensorflow():
    model = tiny()
    several = keras.Model(model.input, [model.output, model.get_layer("norm").output])
    with pytest.raises(RuntimeError, match=r"TFLite cannot compute .* must return one tensor.*Received"):
        engines.by_tflite(several, "float32", 1)
    odd = keras.Model(model.input, keras.layers.Lambda(lambda x: keras.ops.linalg.svd(x[..., None])[1])(model.output))
    with pytest.raises(RuntimeError, match="TFLite cannot compute"):
        engines.by_tflite(odd, "float32", 1)


def test_times_are_medians_of_turns(monkeypatch):
    clock, turns = [0.0], []

    def compute(name, seconds):
        def function(images):
            turns.append(name)
            clock[0] += next(seconds)

        return function

    monkeypatch.setattr(engines, "time", types.SimpleNamespace(perf_counter=lambda: clock[0]))
    functions = {name: compute(name, iter(times)) for name, times in {"a": [9, 1, 2], "b": [3, 3, 3]}.items()}
    assert engines.milliseconds(functions, IMAGES) == {"a": 9000, "b": 3000} and turns == ["a", "b"]  # it ends in time
    clock[0], turns = 0.0, []
    functions = {name: compute(name, iter([t / 100 for t in range(1, 8)])) for name in "ab"}
    assert engines.milliseconds(functions, IMAGES) == pytest.approx({"a": 40, "b": 40})
    assert turns == ["a", "b"] * engines.ROUNDS


SIGNAL = """
import signal
import numpy as np
import keras
from keras_vit.export import engines, openvino, runtimes
from tests.marks import slow

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(4)])
compute = engines.by_openvino(model, "float32", 2)
fixed = runtimes.Compiled(openvino.converted(lambda x: {"output_0": model(x)}, {"images": (8, 8, 3)}, 3))  # another
compute(np.zeros((2, 8, 8, 3))), fixed(np.zeros((3, 8, 8, 3)))
assert runtimes.openvino_core() is runtimes.openvino_core()
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


@slow
def test_a_process_with_two_models_of_openvino_outlives_a_signal():
    done = subprocess.run([sys.executable, "-c", SIGNAL], capture_output=True, text=True)
    assert done.stdout == "interrupted\n" and done.returncode == 0, done.stderr[-500:]
