import json
import os

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import ResNetStem, export_tflite, from_recipe, vit
from keras_vit.config import Data
from keras_vit.counting import count_macs
from keras_vit.data import sources
from keras_vit.export import gpu, runtimes
from tests.export.test_saved_model import IMAGES, tiny

SIZE = (16, 8)
CALIBRATION = np.random.default_rng(0).integers(0, 256, (32, *SIZE, 3)).astype("uint8")
QUANTIZE = {
    "float32": dict(), "float16": dict(quantize="float16"), "dynamic": dict(quantize="dynamic"),
    "int8": dict(quantize="int8", calibration=CALIBRATION),
    "integer": dict(quantize="int8", target="integer", calibration=CALIBRATION),
    "int16x8": dict(quantize="int16x8", calibration=CALIBRATION),
}  # fmt: skip


def network():
    inputs = keras.Input((*SIZE, 3))
    x = keras.layers.Conv2D(8, 3, strides=4, padding="same", activation="swish")(inputs)
    return keras.Model(inputs, keras.layers.BatchNormalization()(x))


# Every pooling, prefix, position and stem; a third of them in floats.
TABLE = [
    (dict(), "float32"),
    (dict(class_position=False, registers=1), "float16"),
    (dict(distilled=True, registers=2, gelu="exact", layer_scale=0.1, qk_norm=True), "dynamic integer"),
    (dict(position="sincos2d", channels=1), "float32"),
    (dict(pooling="gap"), "float32 float16 dynamic int8 integer int16x8"),
    (dict(pooling="gap", class_token=True, registers=1, class_position=False), "float32"),
    (dict(pooling="gap", position="sincos1d", image_size=(4, 12)), "dynamic"),
    (dict(pooling="gap", position="sincos2d", registers=2, num_classes=1), "int8"),
    (dict(pooling="gap", position=None), "float32"),
    (dict(pooling="first", pre_norm=True, final_norm="after", swiglu=True, qkv_bias=False), "float32"),
    (dict(pooling="last", gelu="quick", representation_size=8), "dynamic"),
    (dict(pooling="map", registers=1), "integer"),
    (dict(pooling="map", stem="conv"), "dynamic int8"),
    (dict(pooling="gap", variant=None, patch_size=1, stem=ResNetStem), "dynamic"),
    (dict(pooling="gap", variant=None, patch_size=2, stem=network), "int8"),
]


def shaken(variant="mu/4", stem=None, **options):
    """A small model no weight of which is one or zero."""
    stem = ResNetStem((1,)) if stem is ResNetStem else stem() if callable(stem) else stem
    sizes = {"image_size": SIZE, "num_classes": 4, "width": 16, "depth": 1, "mlp_dim": 32, "num_heads": 2}
    model, rng = vit(variant, stem=stem, **{**sizes, **options}), np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(np.asarray(variable) + rng.normal(size=variable.shape) * 0.2)
    return model


@pytest.fixture
def untimed(monkeypatch):
    monkeypatch.setattr(runtimes, "profile", lambda path: {"ms": {}})


@pytest.mark.parametrize("options, formats", TABLE, ids=lambda value: value if isinstance(value, str) else "")
def test_every_model_is_right_there(options, formats, tmp_path, vulkan, untimed):
    model = shaken(**options)
    for name in formats.split():
        report = export_tflite(model, tmp_path / f"{name}.tflite", **QUANTIZE[name])
        if name == "int16x8":
            assert report.gpu == "part" or "not supported by GPU delegate: " in report.gpu_note
            continue
        assert report.gpu == "all" or (name == "integer" and "map" in options.values()), report
        exact = name in ("float32", "float16")
        assert report.gpu_max_abs_diff < (1e-5 if exact else 0.1) * report.range, name
        assert report.gpu_images == 4 and (not exact or report.gpu_agreement == 1)


@pytest.mark.parametrize(
    "settings", [dict(batch_size=3), dict(input_dtype="uint8", probabilities=True)], ids=["batch", "bytes"]
)
def test_other_calls(settings, tmp_path, vulkan, untimed):
    report = export_tflite(tiny(pooling="gap"), tmp_path / "m.tflite", images=IMAGES, **settings)
    assert report.gpu == "all" and report.gpu_max_abs_diff < 1e-5 * report.range and report.gpu_images == 4


@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="TFDS_DATA_DIR is not set")
@pytest.mark.parametrize("name, data", [("mnist", "mnist"), ("cifar10_hybrid", "cifar10")])
def test_shipped_models_on_real_images(name, data, tmp_path, vulkan, untimed, monkeypatch):
    monkeypatch.setattr(gpu, "IMAGES", 50)
    images = sources.load(Data(source=f"tfds:{data}"), "test[:50]").images
    model = from_recipe(name, pretrained=True)
    for quantize, bound in ((None, 1e-5), ("float16", 1e-5), ("dynamic", 0.03)):
        report = export_tflite(model, tmp_path / f"{quantize}.tflite", quantize=quantize, images=images)
        assert report.gpu == "all" and report.gpu_images == 50
        assert report.gpu_max_abs_diff < bound * report.range and report.gpu_agreement == 1


def test_other_answers_fail_and_leave_nothing(tmp_path, vulkan, monkeypatch):
    monkeypatch.setattr("keras_vit.export.ranks.align", lambda path: None)
    with pytest.raises(
        RuntimeError,
        match=r"^'m.tflite' gives something else on the GPU \(SwiftShader.*largest difference 0\.\d+ of the range",
    ):
        export_tflite(tiny(pooling="gap"), tmp_path / "m.tflite", images=IMAGES)
    assert not list(tmp_path.iterdir())


def test_without_a_driver_the_report_says_so(tmp_path):
    report = export_tflite(tiny(), tmp_path / "m.tflite")
    assert "GPU: not run, no Vulkan driver was found" in str(report) and report.gpu_max_abs_diff is None
    facts = json.loads((tmp_path / "m.tflite.json").read_text())["report"]
    assert facts["gpu"] == "not run" and facts["gpu_note"] == "no Vulkan driver was found"


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A file that names a driver that is not there."""
    path = tmp_path / "driver.json"
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": "/no/driver.so"}}))
    monkeypatch.setenv("VK_DRIVER_FILES", str(path))
    return path


@pytest.mark.parametrize(
    "run, said",
    [
        (None, "no driver here has a device that LiteRT takes"),
        ("import os; os.abort()", "LiteRT was ended by signal 6: without a word"),
        ("import time; time.sleep(60)", "no answer in 3 seconds"),
        (
            "raise SystemExit('ERROR: not supported:\\nMUL: why\\nE0000 1 a.cc:1] {\\nINFO')",
            "LiteRT failed: not supported: MUL: why",
        ),
        ("raise ValueError('no such operator')", "LiteRT failed: ValueError: no such operator"),
    ],
)
def test_what_a_driver_may_do_does_not_end_the_export(run, said, tmp_path, driver, untimed, monkeypatch):
    if run:
        monkeypatch.setattr(gpu, "_RUN", run)
        monkeypatch.setattr(gpu, "SECONDS", 3)
    report = export_tflite(tiny(), tmp_path / "m.tflite")
    assert (report.gpu, report.gpu_note) == ("not run", said) and said in str(report)


@pytest.mark.parametrize("options", [dict(), dict(stem="conv", pooling="gap"), dict(position=None, registers=2)])
def test_multiply_adds_are_counted_in_the_file(options, tmp_path, untimed):
    model = tiny(**options)
    export_tflite(model, tmp_path / "m.tflite", batch_size=2)
    assert gpu._macs(tmp_path / "m.tflite") == 2 * count_macs(model)


def test_large_models_are_passed_over(tmp_path, driver, monkeypatch):
    monkeypatch.setattr(gpu, "MACS", 1e3)
    report = export_tflite(tiny(), tmp_path / "m.tflite")
    assert report.gpu == "not run" and "billion multiply-adds, and at most 1e-06 are tried" in report.gpu_note


def test_drivers_are_found_where_vulkan_finds_them(tmp_path, driver, monkeypatch):
    assert gpu.drivers() == [driver]
    monkeypatch.setenv("VK_DRIVER_FILES", f"/no/file.json{os.pathsep}{tmp_path}")
    assert gpu.drivers() == [driver]
    monkeypatch.delenv("VK_DRIVER_FILES")
    monkeypatch.setattr(gpu, "FOLDERS", ("/no/folder", str(tmp_path)))
    assert gpu.drivers() == [driver]
    monkeypatch.setenv("VK_ICD_FILENAMES", "none")
    assert gpu.drivers() == []
