import functools
import json
import tempfile

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit import config, export_tflite, vit  # noqa: E402
from keras_vit.export import layer_differences, prepare, quantize  # noqa: E402
from keras_vit.models import kinds  # noqa: E402
from tests.export.small import CALIBRATION as IMAGES  # noqa: E402
from tests.export.small import tiny  # noqa: E402
from tests.marks import few, slow  # noqa: E402

MODELS = {
    "registers": dict(pooling="gap", stem="conv", tokens={"registers": 1}),
    "distilled": dict(stem="conv", tokens={"distilled": True}),
    "map": dict(pooling="map"),
}


@functools.cache
def whole(name):
    """Returns a small model, and the bytes of its file in float32."""
    model = tiny(**MODELS[name])
    with tempfile.TemporaryDirectory() as folder:
        return model, export_tflite(model, f"{folder}/m.tflite").bytes


@few(1)
@few(2)
@pytest.mark.parametrize(
    "name, settings, size, error",
    [
        ("registers", dict(quantize="float16"), 0.65, 1e-3),
        ("registers", dict(quantize="dynamic"), 0.6, 2e-2),
        ("registers", dict(quantize="int8", input_dtype="uint8", probabilities=True), 0.75, 2e-2),
        ("registers", dict(quantize="int8", target="integer"), 0.75, 5e-2),
        ("registers", dict(quantize="int16x8"), 0.65, 2e-2),
        pytest.param("distilled", dict(quantize="dynamic"), 0.6, 2e-2, marks=slow),
        pytest.param("map", dict(quantize="int8", target="integer"), 0.75, 5e-2, marks=slow),
    ],
)
def test_each_format_is_smaller_and_near(name, settings, size, error, tmp_path):
    model, whole_bytes = whole(name)
    given = {"calibration": IMAGES} if settings["quantize"] in quantize.CALIBRATED else {}
    report = export_tflite(model, tmp_path / "small.tflite", **given, **settings)
    assert report.bytes < size * whole_bytes and report.mean_abs_diff < error * report.range
    assert report.quantize == settings["quantize"] and report.images == (40 if given else 8)
    if settings.get("target") != "integer" and settings["quantize"] != "int16x8":
        assert report.partitions == 1 and set(report.outside) <= {"CAST"}
    else:
        assert report.outside and 0 < report.outside_time <= 1
    facts = json.loads((tmp_path / "small.tflite.json").read_text())
    assert facts["report"]["bytes"] == report.bytes and facts["dtype"] == settings.get("input_dtype", "float32")


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(quantize="int9"), "'int8'.*Received: .*'int9'"),
        (dict(quantize="int8"), "needs `calibration`.*Received: calibration=None"),
        (dict(quantize="dynamic", target="integer"), "target='integer' needs.*quantize='dynamic'"),
        (dict(quantize="int8", target="phone"), "'phone'"),
        (dict(quantize="int8", calibration=IMAGES[:, :8]), r"shape=\(40, 8, 8, 3\)"),
        (dict(quantize="int8", calibration=IMAGES / 255), "multiply by 255"),
        (
            dict(quantize="int8", calibration=IMAGES, batch_size=2),
            "must be 1 for a calibrated format. Received: batch_size=2",
        ),
        (dict(calibration=IMAGES), "`calibration` is for quantize='int8' and 'int16x8'. Received: quantize=None"),
        (dict(quantize="dynamic", calibration=IMAGES), "`calibration` is for .*Received: quantize='dynamic'"),
        (dict(input_dtype="int8"), "input_dtype"),
        (dict(labels=["a"]), "list of 4 class names"),
    ],
)
def test_bad_settings_are_errors_before_anything_is_written(settings, message, exported, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_tflite(exported[0], tmp_path / "model.tflite", **settings)
    assert not list(tmp_path.iterdir())


def test_little_calibration_is_warned_of():
    with pytest.warns(UserWarning, match="fewer than 32 images is rough. Received: 3"):
        quantize.calibration_images("int8", "cpu", IMAGES[:3], (12, 8, 3))


def test_a_missing_converter_is_an_error(monkeypatch):
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install .keras-vision-transformers.quantize"):
        quantize.calibration_images("int8", "cpu", IMAGES, (12, 8, 3))


def test_a_model_of_plain_keras_is_quantized_too(tmp_path):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Conv2D(8, 3), keras.layers.ReLU(), keras.layers.Flatten(), keras.layers.Dense(4)]
    model = keras.Sequential([keras.Input((12, 8, 3)), keras.layers.Rescaling(1 / 255), *layers])
    assert export_tflite(model, tmp_path / "m.tflite", quantize="int8", calibration=IMAGES).partitions == 1


def labeled():
    return tf.data.Dataset.from_tensor_slices((IMAGES, np.zeros(len(IMAGES), "int32")))


@pytest.mark.parametrize(
    "make",
    [
        lambda: labeled().map(lambda image, label: image),
        lambda: labeled(),
        lambda: labeled().batch(7),
        lambda: labeled().batch(7).map(lambda image, label: tf.cast(image, "float32")).repeat(),
    ],
    ids=["images", "labeled", "batches", "for ever"],
)
def test_a_dataset_calibrates_as_its_images_do(make, monkeypatch):
    monkeypatch.setattr(quantize, "MANY", 33)
    found = quantize.calibration_images("int8", "cpu", make(), (12, 8, 3))
    np.testing.assert_array_equal(found, IMAGES[:33].astype("float32"))


def raising():
    yield IMAGES[0]
    raise RuntimeError("no more")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: (image for image in IMAGES), "tf.data.Dataset of images.*Received: generator"),
        (lambda: [IMAGES[0], IMAGES[0, :8]], "tf.data.Dataset of images.*Received: list"),
        (lambda: labeled().map(lambda image, label: {"image": image}), "Received: a dataset of {'image': TensorSpec"),
        (lambda: labeled().map(lambda image, label: label), r"Received: a dataset of TensorSpec\(shape=\(\)"),
        (lambda: labeled().take(0), "Received: an empty dataset"),
        (lambda: labeled().map(lambda image, label: image[:8]), r"`calibration` must have the shape.*\(40, 8, 8, 3\)"),
        (lambda: labeled().map(lambda image, label: tf.cast(image, "float32") / 255), "multiply by 255"),
        (
            lambda: tf.data.Dataset.range(8, 10).map(lambda side: tf.zeros((side, 8, 3))),
            r"images of shapes \[\(8, 8, 3\), \(9, 8, 3\)\]",
        ),
        (
            lambda: tf.data.Dataset.from_generator(raising, output_signature=tf.TensorSpec((12, 8, 3))),
            "^The dataset `calibration` cannot be read: RuntimeError: no more",
        ),
        (
            lambda: tf.data.Dataset.from_tensors(b"\x89PNG\r\n\x1a\n").map(
                lambda file: tf.reshape(tf.io.decode_png(file, 3), (12, 8, 3))
            ),
            "^The dataset `calibration` cannot be read: .*PNG",
        ),
    ],
)
def test_what_does_not_calibrate_is_an_error(make, message, exported, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_tflite(exported[0], tmp_path / "m.tflite", quantize="int8", calibration=make())
    assert not list(tmp_path.iterdir())


def test_a_dataset_makes_a_file(exported, tmp_path):
    model, _, whole = exported
    report = export_tflite(model, tmp_path / "m.tflite", quantize="int8", calibration=labeled().batch(8))
    assert report.images == 40 and report.agreement > 0.5 and report.partitions == 1 and report.outside == {}
    assert report.bytes < 0.6 * whole.bytes and report.mean_abs_diff < 2e-2 * report.range


def numbers(mean, deviation):
    """Returns a model of numbers whose outputs vary by their deviations, as one that was trained, and images."""
    keras.utils.set_random_seed(0)
    names = tuple("abcd"[: len(mean)])
    arguments = dict(image_size=16, depth=2, width=32, num_heads=2, mlp_dim=64)
    model = config.Regress(names=names, mean=mean, deviation=deviation).model(variant="Ti/8", **arguments)
    for i, weight in enumerate(model.weights):
        weight.assign(weight + 0.1 * np.random.default_rng(i).standard_normal(weight.shape))
    images = np.random.default_rng(0).integers(0, 80, (64, 16, 16, 3)) + np.linspace(0, 170, 64)[:, None, None, None]
    images = images.astype("uint8").astype("float32")
    head = model.get_layer("head")
    outputs = keras.Model(model.input, head.output).predict(images, verbose=0)
    kernel, bias = head.get_weights()
    head.set_weights([kernel / outputs.std(0), (bias - outputs.mean(0)) / outputs.std(0)])
    kinds.note(model, "numbers")
    return model, images


@slow
@pytest.mark.parametrize(
    ("mean", "deviation"),
    [((2000.0,), (5.0,)), ((4e4, 3.0), (1.5e4, 1.0)), ((1e-3, 1e5, 0.5), (1e-4, 1e4, 0.1))],
)
def test_numbers_in_other_units_keep_their_steps(mean, deviation, tmp_path):
    model, images = numbers(mean, deviation)
    wanted = model.predict(images, verbose=0)
    report = export_tflite(model, tmp_path / "m.tflite", quantize="int8", calibration=images)
    interpreter = layer_differences.opened(tmp_path / "m.tflite")
    runner = interpreter.get_signature_runner("serve")
    found = np.concatenate([next(iter(runner(images=image[None]).values())) for image in images])
    error = np.abs(found - wanted).mean(0) / np.array(deviation)
    assert error.max() < 0.15 and report.own_diff < 0.15 and report.partitions == 1
    assert "of a number's own range" in str(report)
    assert all(len(np.unique(column)) > 32 for column in found.T)


def test_a_file_of_integers_in_which_a_number_has_no_steps_is_refused(tmp_path):
    model, images = numbers((4e4, 3.0), (1.5e4, 1.0))
    with pytest.raises(RuntimeError, match="does not match the model: .* on average by .* of the mean deviation"):
        export_tflite(model, tmp_path / "m.tflite", quantize="int8", target="integer", calibration=images)
    assert not (tmp_path / "m.tflite").exists()


@slow
def test_last_products(tmp_path):
    model = whole("map")[0]
    export_tflite(model, tmp_path / "m.tflite")
    assert len(quantize.last_products(tmp_path / "m.tflite")) == 1
    export_tflite(vit("mu/4", image_size=8, num_classes=0), tmp_path / "e.tflite")
    assert quantize.last_products(tmp_path / "e.tflite") == []  # a norm gives its outputs
