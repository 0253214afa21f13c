import json
import os

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import ResNetStem, export_tflite, from_recipe, vit
from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.export import comparison, gpu, runtimes
from keras_vit.models.counting import count_macs
from keras_vit.traits import Traits
from tests.export.small import IMAGES, OF_TEXTS, shaken, tiny
from tests.marks import slow

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


# One model in every format; and every pooling, prefix, position and stem, a third of them in floats.
TABLE = [
    (dict(pooling="gap"), "float16 int8"),
    (dict(pooling="map", stem="conv"), "dynamic"),
    (dict(pooling="gap"), "float32 float16 dynamic int8 integer int16x8"),
    (dict(), "float32"),
    (dict(tokens={"class_position": False, "registers": 1}), "float16"),
    (
        dict(tokens={"distilled": True, "registers": 2}, block={"gelu": "exact", "layer_scale": 0.1, "qk_norm": True}),
        "dynamic integer",
    ),
    (dict(position="sincos2d", channels=1), "float32"),
    (dict(pooling="gap", tokens={"class_token": True, "registers": 1, "class_position": False}), "float32"),
    (dict(pooling="gap", position="sincos1d", image_size=(4, 12)), "dynamic"),
    (dict(pooling="gap", position="sincos2d", tokens={"registers": 2}, num_classes=1), "int8"),
    (dict(pooling="gap", position=None), "float32"),
    (
        dict(pooling="first", tokens={"pre_norm": True}, final_norm="after", block={"swiglu": True, "qkv_bias": False}),
        "float32",
    ),
    (dict(pooling="last", block={"gelu": "quick"}, representation_size=8), "dynamic"),
    (dict(pooling="map", tokens={"registers": 1}), "integer"),
    (dict(pooling="map", stem="conv"), "int8"),
    (dict(pooling="gap", variant=None, patch_size=1, stem=ResNetStem), "dynamic"),
    (dict(pooling="gap", variant=None, patch_size=2, stem=network), "int8"),
]


def narrow(variant="mu/4", stem=None, **options):
    """Returns a small model without a weight of one or zero."""
    stem = ResNetStem((1,)) if stem is ResNetStem else stem() if callable(stem) else stem
    sizes = {"image_size": SIZE, "num_classes": 4, "width": 16, "depth": 1, "mlp_dim": 32, "num_heads": 2}
    return shaken(vit(variant, stem=stem, **{**sizes, **options}))


@slow
@pytest.mark.parametrize("kind", OF_TEXTS)
def test_gpu_and_cpu_agree_on_models_of_texts(kind, tmp_path, vulkan, untimed):
    for name in ("float32", "float16", "dynamic"):
        report = export_tflite(OF_TEXTS[kind](), tmp_path / f"{name}.tflite", batch_size=2, **QUANTIZE[name])
        assert (report.on("GPU").share, report.on("GPU").images) == ("part", 4)


@slow
@pytest.mark.parametrize("options, formats", TABLE)
def test_gpu_and_cpu_agree_on_every_model(options, formats, tmp_path, vulkan, untimed):
    model = narrow(**options)
    for name in formats.split():
        report = export_tflite(model, tmp_path / f"{name}.tflite", **QUANTIZE[name])
        if name == "int16x8":
            assert report.on("GPU").share == "part" or "not supported by GPU delegate: " in report.on("GPU").note
            continue
        assert report.on("GPU").share == "all" or (name == "integer" and "map" in options.values()), report
        exact = name in ("float32", "float16")
        assert report.on("GPU").max_abs_diff < (1e-5 if exact else 0.1) * report.range, name
        assert report.on("GPU").images == 4 and (not exact or report.on("GPU").agreement == 1)


@slow
def test_batches_of_bytes(tmp_path, vulkan, untimed):
    settings = dict(batch_size=3, input_dtype="uint8", probabilities=True)
    report = export_tflite(tiny(pooling="gap"), tmp_path / "m.tflite", images=IMAGES, **settings)
    assert (
        report.on("GPU").share == "all"
        and report.on("GPU").max_abs_diff < 1e-5 * report.range
        and report.on("GPU").images == 4
    )


@slow
@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="TFDS_DATA_DIR is not set")
@pytest.mark.parametrize(
    "name, data, formats, count",
    [
        ("mnist", "mnist", ["dynamic"], 10),
        pytest.param("mnist", "mnist", [None], 10, marks=slow),
        pytest.param("cifar10_hybrid", "cifar10", [None, "float16", "dynamic"], 10, marks=slow),
    ],
)
def test_shipped_models_on_real_images(name, data, formats, count, tmp_path, vulkan, untimed, monkeypatch):
    monkeypatch.setattr(gpu, "IMAGES", count)
    images = sources.load(Data(source=f"tfds:{data}"), f"test[:{count}]").images
    model = from_recipe(name, pretrained=True)
    best = np.sort(model.predict(images, verbose=0), axis=-1)
    margins = best[:, -1] - best[:, -2]
    for quantize in formats:
        report = export_tflite(model, tmp_path / f"{quantize}.tflite", quantize=quantize, images=images)
        assert report.on("GPU").share == "all" and report.on("GPU").images == count
        bound = 0.03 if quantize == "dynamic" else 1e-5
        near = (margins < 2 * bound * report.range).mean()  # ties, which rounding on the CPU alone may turn
        assert report.on("GPU").max_abs_diff < bound * report.range and report.on("GPU").agreement >= 1 - near


def test_other_outputs_fail_and_leave_nothing(tmp_path, vulkan, untimed, monkeypatch):
    monkeypatch.setattr("keras_vit.export.ranks.align", lambda path, delegate: None)
    with pytest.raises(
        RuntimeError,
        match=r"^The outputs of 'm.tflite' on the GPU \(SwiftShader.* do not match .* up to 0\.\d+ of the range",
    ):
        export_tflite(tiny(pooling="gap"), tmp_path / "m.tflite", images=IMAGES)
    assert not list(tmp_path.iterdir())


def test_without_a_driver_the_report_says_so(exported):
    _, path, report = exported
    assert "GPU: not run, no Vulkan driver was found" in str(report) and report.on("GPU").max_abs_diff is None
    facts = json.loads(path.with_name(f"{path.name}.json").read_text())["report"]
    assert [(one["on"], one["images"], one["note"]) for one in facts["comparisons"]] == [
        ("GPU", 0, "no Vulkan driver was found")
    ]


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A manifest of a driver that does not exist."""
    path = tmp_path / "driver.json"
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": "/no/driver.so"}}))
    monkeypatch.setenv("VK_DRIVER_FILES", str(path))
    return path


@pytest.mark.parametrize(
    "script, note",
    [
        (None, "no Vulkan driver here has a device that LiteRT can use"),
        ("import os; os.abort()", "LiteRT was ended by signal 6: no message"),
        ("import time; time.sleep(60)", "no result in 1 seconds"),
        (
            "raise SystemExit('ERROR: not supported:\\nMUL: why\\nE0000 1 a.cc:1] {\\nINFO')",
            "LiteRT failed: not supported: MUL: why",
        ),
        ("raise ValueError('no such operator')", "LiteRT failed: ValueError: no such operator"),
    ],
)
def test_a_driver_that_fails_does_not_end_the_export(script, note, exported, driver, monkeypatch):
    if script:
        monkeypatch.setattr(gpu, "_RUN", script)
        monkeypatch.setattr(gpu, "SECONDS", 1 if "sleep" in script else 60)
    assert on_gpu(exported) == [comparison.Comparison("GPU", note=note)]


def on_gpu(exported):
    model, path, report = exported
    run, _ = runtimes.tflite(path)
    return gpu.compare_with_cpu(path, Traits(model), IMAGES, run, report)


@pytest.mark.parametrize(
    "options",
    [dict(stem="conv", pooling="gap"), pytest.param(dict(position=None, tokens={"registers": 2}), marks=slow)],
)
def test_multiply_adds_are_counted_in_the_file(options, exported, tmp_path, untimed):
    model, path, _ = exported
    assert gpu._macs(path) == count_macs(model)
    model = tiny(**options)
    export_tflite(model, tmp_path / "m.tflite", batch_size=2)
    assert gpu._macs(tmp_path / "m.tflite") == 2 * count_macs(model)


def test_large_models_are_passed_over(exported, driver, monkeypatch):
    monkeypatch.setattr(gpu, "MACS", 1e3)
    [skipped] = on_gpu(exported)
    assert skipped.images == 0 and "billion multiply-adds; the check runs up to 1e-06" in skipped.note


def test_drivers_are_found_where_vulkan_finds_them(tmp_path, driver, monkeypatch):
    assert gpu.drivers() == [driver]
    monkeypatch.setenv("VK_DRIVER_FILES", f"/no/file.json{os.pathsep}{tmp_path}")
    assert gpu.drivers() == [driver]
    monkeypatch.delenv("VK_DRIVER_FILES")
    monkeypatch.setattr(gpu, "FOLDERS", ("/no/folder", str(tmp_path)))
    assert gpu.drivers() == [driver]
    monkeypatch.setenv("VK_ICD_FILENAMES", "none")
    assert gpu.drivers() == []
