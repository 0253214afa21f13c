import pathlib
import sys
import threading
import types

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("openvino")

import keras_vit
from keras_vit.export import engines, predictor, runtimes
from tests.export.small import IMAGES, KINDS, tiny
from tests.marks import few, slow


@few(2)
@pytest.mark.parametrize("engine", ["openvino", "tflite"])
@pytest.mark.parametrize("name", KINDS)
def test_outputs_are_those_of_predict_for_any_number_of_images(name, engine):
    model, images = KINDS[name]()
    fast = predictor(model, engine, batch_size=2)
    expected = model.predict(images, verbose=0)
    outputs = fast.predict(images, batch_size=2)  # the last batch has one image
    assert fast.milliseconds == {}
    assert fast.engine == engine and outputs.dtype == expected.dtype and outputs.shape == expected.shape
    atol = (2e-2 if name == "bfloat16" else 1e-5) * max(np.ptp(expected), 1)  # it computes in float32
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(fast(images[:1].astype("float64")), expected[:1], rtol=0, atol=atol)
    turned = np.ascontiguousarray(images[:, ::-1])[:, ::-1]  # not contiguous
    np.testing.assert_array_equal(fast(turned), fast(images))
    assert fast(images[:0]).shape == fast.predict(images[:0]).shape == (0, *expected.shape[1:])


def test_a_structure_of_outputs_in_their_types():
    model = tiny(dtype="mixed_bfloat16")
    tokens = keras.layers.Activation("linear", dtype="bfloat16", name="tokens")(model.get_layer("norm").output)
    several = keras.Model(model.input, {"tokens": tokens, "logits": model.output})
    outputs, expected = predictor(several, "openvino").predict(IMAGES), several.predict(IMAGES, verbose=0)
    assert outputs.keys() == expected.keys()
    for key in expected:
        assert outputs[key].dtype == expected[key].dtype and outputs[key].shape == expected[key].shape
        np.testing.assert_allclose(outputs[key].astype("float32"), expected[key].astype("float32"), atol=0.2)


@pytest.mark.parametrize("engine", engines.BY)
def test_it_has_the_weights_of_its_time_also_when_the_model_is_gone(engine):
    model = tiny()
    expected, fast = (
        model.predict(IMAGES, verbose=0),
        predictor(model, engine, threads=1 if engine != "keras" else None),
    )
    for variable in model.weights:
        variable.assign(variable * np.nan)
    del model, variable
    np.testing.assert_allclose(fast.predict(IMAGES), expected, atol=1e-4)


def test_several_threads_at_once_get_their_own_outputs():
    model = tiny()
    fast, images = predictor(model, threads=1), np.random.default_rng(0).integers(0, 256, (8, 40, 12, 8, 3))
    expected, wrong = [fast(each) for each in images], []

    def work(i):
        for _ in range(50):
            if not np.array_equal(fast(images[i]), expected[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert not wrong


@pytest.mark.skipif(not runtimes.openvino_has("BF16"), reason="of processors with bfloat16")
def test_bfloat16_on_request():
    model = tiny()
    expected, fast = model.predict(IMAGES, verbose=0), predictor(model, "openvino", dtype="bfloat16")
    apart = np.abs(fast.predict(IMAGES) - expected).max() / np.ptp(expected)
    assert fast.dtype == "bfloat16" and 1e-5 < apart < 0.05


def test_without_openvino_keras_predicts_and_says_why(monkeypatch):
    model = tiny()
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.warns(
        UserWarning, match=r"Predicting by keras, without OpenVINO: .* needs openvino\. Install it: .*\[openvino\]'\.$"
    ):
        slow_one = predictor(model)
    assert slow_one.engine == "keras"
    np.testing.assert_allclose(slow_one.predict(IMAGES, batch_size=3), model.predict(IMAGES, verbose=0), atol=1e-5)
    with pytest.raises(ImportError, match="needs openvino"):
        predictor(model, "openvino")


def test_wrong_outputs_are_not_handed_out(monkeypatch):
    class Wrong(runtimes.Compiled):
        def __call__(self, images):
            return {name: output * 1.01 for name, output in super().__call__(images).items()}

    monkeypatch.setattr(runtimes, "Compiled", Wrong)
    with pytest.raises(RuntimeError, match="on openvino in float32 differ from the model's by up to"):
        predictor(tiny(), "openvino")
    with pytest.warns(UserWarning, match="Predicting by keras and without `threads`, without OpenVINO: The outputs of"):
        assert predictor(tiny(), threads=2).engine == "keras"


@pytest.mark.parametrize("engine", engines.BY)
def test_wrong_outputs_of_whole_batches_are_not_handed_out(engine, monkeypatch):
    model, right = tiny(), engines.BY[engine]
    wrong = lambda compute: lambda images: [x * (1.01 if len(images) == 8 else 1) for x in compute(images)]  # noqa: E731
    monkeypatch.setitem(engines.BY, engine, lambda *given: wrong(right(*given)))
    with pytest.raises(RuntimeError, match=f"on {engine} in float32 differ from the model's by up to"):
        predictor(model, engine, batch_size=8)


@slow
@pytest.mark.parametrize("best", engines.BY)
def test_the_engine_that_takes_least_time_is_taken(best, monkeypatch):
    model, clock, asked = tiny(), [0.0], []

    def built(name):
        def compute(images):
            clock[0] += 0.001 if name == best else 0.003
            asked.append((name, len(images)))
            return [np.asarray(model(images))]

        return lambda *given: compute

    for name in engines.BY:
        monkeypatch.setitem(engines.BY, name, built(name))
    monkeypatch.setattr(engines, "time", types.SimpleNamespace(perf_counter=lambda: clock[0]))
    fast = predictor(model, batch_size=4)
    assert fast.engine == best and fast.milliseconds == pytest.approx({**dict.fromkeys(engines.BY, 3.0), best: 1.0})
    assert f"{best} 1 ms" in str(fast) and {count for _, count in asked} == {2, 4}
    asked.clear()
    fast.predict(np.repeat(IMAGES, 3, axis=0)[:11])
    fast.predict(IMAGES[:1])
    fast(IMAGES[:3])
    assert asked == [(best, 4)] * 3 + [(best, 1), (best, 3)]  # the last batch of many is filled up
    many = predictor(model, batch_size=64)  # for which TFLite's loop over images is not worth trying
    assert many.milliseconds.keys() == {"openvino", "keras"}


class Scaled(keras.layers.Layer):
    """A layer whose configuration misses its factor."""

    factor = 1.0

    def call(self, x):
        return x * keras.ops.cast(self.factor, x.dtype)


class Fixed(keras.layers.Dense):
    """A layer that Keras cannot clone."""

    def __init__(self, width):
        super().__init__(width)

    def get_config(self):
        raise NotImplementedError("no configuration")


def headed(layer, dtype="float32"):
    model = tiny(dtype=dtype)
    return keras.Model(model.input, layer(model.output))


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("engine", ["openvino", "keras"])
def test_a_copy_that_computes_something_else_is_refused(engine, dtype):
    layer = Scaled(dtype=dtype)
    layer.factor = 5.0
    with pytest.raises(RuntimeError, match="differ from the model's by up to"):
        predictor(headed(layer, dtype), engine)


def test_a_model_that_cannot_be_cloned_keeps_its_weights_or_is_refused():
    model = headed(Fixed(3))
    expected, fast = model.predict(IMAGES, verbose=0), predictor(model, "keras")
    for variable in model.weights:
        variable.assign(variable + 1)
    np.testing.assert_allclose(fast.predict(IMAGES), expected, atol=1e-5)
    with pytest.raises(ValueError, match="cannot clone .* in float32 only.*Received: dtype='bfloat16'"):
        predictor(model, "keras", dtype="bfloat16")


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_quantized_models_are_predicted_with_keras():
    model = tiny()
    model.quantize("int8")
    with pytest.warns(UserWarning, match="Predicting by keras, without OpenVINO: OpenVINO cannot compute"):
        fast = predictor(model)
    np.testing.assert_allclose(fast.predict(IMAGES), model.predict(IMAGES, verbose=0), atol=1e-4)


def test_a_sequential_model():
    model = keras.Sequential([keras.Input((12, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(2)])
    for engine in ("openvino", "keras"):
        outputs = predictor(model, engine).predict(IMAGES)
        np.testing.assert_allclose(outputs, model.predict(IMAGES, verbose=0), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(engine="onnx"), "`engine` must be one of None, 'openvino', 'tflite', 'keras'. Received: engine='onnx'"),
        (dict(dtype="float16"), "`dtype` must be one of 'float32', 'bfloat16'. Received: dtype='float16'"),
        (dict(threads=0), "`threads` must be a positive integer. Received: threads=0"),
        (dict(engine="keras", threads=2), "`threads` is for OpenVINO and TFLite.*Received: threads=2, engine='keras'"),
        (dict(threads=10**12), "at most 1,024.*Received: threads=1000000000000"),
        (dict(engine="tflite", dtype="bfloat16"), "TFLite computes in float32.*Received: dtype='bfloat16'"),
        (dict(batch_size=0), "`batch_size` must be a positive integer. Received: batch_size=0"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        predictor(tiny(), **options)


def test_other_models_and_images_are_named():
    with pytest.raises(ValueError, match="must be a Keras model of images of a known size.*Received: 'int'"):
        predictor(3)
    with pytest.raises(ValueError, match=r"\(images, 12, 8, 3\). Received: shape \(12, 8, 3\), dtype uint8"):
        predictor(tiny(), "keras")(IMAGES[0])
    with pytest.raises(ValueError, match=r"`images` must be numbers.*Received: shape \(\), dtype object"):
        predictor(tiny(), "keras")([[1], [2, 3]])
    model = tiny()
    with pytest.raises(ValueError, match=r"must return outputs for each image\. Received: .*\[\(\)\]"):
        predictor(keras.Model(model.input, keras.ops.sum(model.output)))


@slow
def test_memory_does_not_grow_with_the_numbers_of_images():
    fast = predictor(keras_vit.from_pretrained("mnist"), "openvino")
    images = np.zeros((64, 28, 28, 1), "uint8")
    used = lambda: int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096  # noqa: E731
    for _ in range(2):
        [fast(images[:count]) for count in range(1, 65)]
    before = used()
    for _ in range(5):
        [fast(images[:count]) for count in range(1, 65)]
    assert used() - before < 30e6
