import json

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit import export_tflite  # noqa: E402
from keras_vit.export import prepare, quantize  # noqa: E402
from tests.export.test_saved_model import tiny  # noqa: E402

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 12, 8, 3)).astype("uint8")
WEIGHTS = ("FULLY_CONNECTED", "CONV_2D")


@pytest.mark.parametrize(
    "options, settings, size, error",
    [
        (dict(), dict(quantize="float16"), 0.65, 1e-3),
        (dict(stem="conv", distilled=True), dict(quantize="dynamic"), 0.6, 2e-2),
        (dict(), dict(quantize="int8"), 0.6, 2e-2),
        (dict(pooling="gap", stem="conv"), dict(quantize="int8", input_dtype="uint8", probabilities=True), 0.75, 2e-2),
        (dict(pooling="map"), dict(quantize="int8", target="integer"), 0.75, 5e-2),
        (dict(registers=1), dict(quantize="int16x8"), 0.65, 2e-2),
    ],
)
def test_each_format_is_smaller_and_near(options, settings, size, error, tmp_path):
    model = tiny(**options)
    given = {"calibration": IMAGES} if settings["quantize"] in quantize.CALIBRATED else {}
    whole = export_tflite(model, tmp_path / "float.tflite")
    report = export_tflite(model, tmp_path / "small.tflite", **given, **settings)
    assert report.bytes < size * whole.bytes and report.mean_abs_diff < error * report.range
    assert report.quantize == settings["quantize"] and report.images == (40 if given else 8)
    if settings.get("target") != "integer" and settings["quantize"] != "int16x8":
        assert report.partitions == 1 and set(report.outside) <= {"CAST"}
    else:
        assert report.outside and 0 < report.outside_time <= 1
    facts = json.loads((tmp_path / "small.tflite.json").read_text())
    assert facts["report"]["bytes"] == report.bytes and facts["dtype"] == settings.get("input_dtype", "float32")


@pytest.mark.parametrize(
    "settings, said",
    [
        (dict(quantize="int9"), "'int8'.*Received: .*'int9'"),
        (dict(quantize="int8"), "needs `calibration`.*Received: None"),
        (dict(quantize="dynamic", target="integer"), "target='integer' is for.*quantize='dynamic'"),
        (dict(quantize="int8", target="phone"), "'phone'"),
        (dict(quantize="int8", calibration=IMAGES[:, :8]), r"shape=\(40, 8, 8, 3\)"),
        (dict(quantize="int8", calibration=IMAGES / 255), "multiply by 255"),
        (dict(quantize="int8", calibration=IMAGES, batch_size=2), "one image a call. Received: batch_size=2"),
        (dict(input_dtype="int8"), "input_dtype"),
        (dict(labels=["a"]), "names of the 4 classes"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(settings, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        export_tflite(tiny(), tmp_path / "model.tflite", **settings)
    assert not list(tmp_path.iterdir())


def test_little_calibration_is_warned_of():
    with pytest.warns(UserWarning, match="rough: 3, and 32 are few"):
        quantize.check("int8", "cpu", IMAGES[:3], (12, 8, 3))


def test_a_converter_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install ai-edge-quantizer"):
        quantize.check("int8", "cpu", IMAGES, (12, 8, 3))


def test_a_model_of_plain_keras_is_quantized_too(tmp_path):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Conv2D(8, 3), keras.layers.ReLU(), keras.layers.Flatten(), keras.layers.Dense(4)]
    model = keras.Sequential([keras.Input((12, 8, 3)), keras.layers.Rescaling(1 / 255), *layers])
    assert export_tflite(model, tmp_path / "m.tflite", quantize="int8", calibration=IMAGES).partitions == 1


def labelled():
    return tf.data.Dataset.from_tensor_slices((IMAGES, np.zeros(len(IMAGES), "int32")))


@pytest.mark.parametrize(
    "make",
    [
        lambda: labelled().map(lambda image, label: image),
        lambda: labelled(),
        lambda: labelled().batch(7),
        lambda: labelled().batch(7).map(lambda image, label: tf.cast(image, "float32")).repeat(),
    ],
    ids=["images", "labelled", "batches", "for ever"],
)
def test_a_dataset_calibrates_as_its_images_do(make, monkeypatch):
    monkeypatch.setattr(quantize, "MANY", 33)
    found = quantize.check("int8", "cpu", make(), (12, 8, 3))
    np.testing.assert_array_equal(found, IMAGES[:33].astype("float32"))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: (image for image in IMAGES), "tf.data.Dataset of images.*Received: generator"),
        (lambda: [IMAGES[0], IMAGES[0, :8]], "tf.data.Dataset of images.*Received: list"),
        (lambda: labelled().map(lambda image, label: {"image": image}), "Received: a dataset of {'image': TensorSpec"),
        (lambda: labelled().map(lambda image, label: label), r"Received: a dataset of TensorSpec\(shape=\(\)"),
        (lambda: labelled().take(0), "Received: an empty dataset"),
        (lambda: labelled().map(lambda image, label: image[:8]), r"`calibration` must have the shape.*\(40, 8, 8, 3\)"),
        (lambda: labelled().map(lambda image, label: tf.cast(image, "float32") / 255), "multiply by 255"),
        (
            lambda: tf.data.Dataset.range(8, 10).map(lambda side: tf.zeros((side, 8, 3))),
            r"images of shapes \[\(8, 8, 3\), \(9, 8, 3\)\]",
        ),
    ],
)
def test_what_does_not_calibrate_is_named(make, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        export_tflite(tiny(), tmp_path / "m.tflite", quantize="int8", calibration=make())
    assert not list(tmp_path.iterdir())


def test_a_dataset_makes_a_file(tmp_path):
    report = export_tflite(tiny(), tmp_path / "m.tflite", quantize="int8", calibration=labelled().batch(8))
    assert report.images == 40 and report.agreement > 0.5
