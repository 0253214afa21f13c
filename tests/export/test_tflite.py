import subprocess
import sys

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit import export_tflite  # noqa: E402
from tests.export.small import IMAGES, shaken, tiny  # noqa: E402

SCRIPT = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
images, *files = sys.argv[1:]
for file in files:
    run = Interpreter(file).get_signature_runner("serve")
    np.save(file + ".npy", np.concatenate([run(images=i[None])["logits"] for i in np.load(images)]))
assert "tensorflow" not in sys.modules
"""


def test_runs_without_tensorflow_and_agrees(exported, tmp_path, untimed):
    rows = [
        dict(dtype="mixed_bfloat16", pooling="gap", position="sincos2d"),
        dict(pooling="map", position="sincos1d"),
        dict(
            pooling="token+gap",
            position=None,
            rotary={"centered": False, "interleaved": True},
            block={"key_bias": False},
        ),
        dict(
            tokens={"distilled": True, "registers": 2},
            block={"gelu": "exact", "layer_scale": 0.1, "qk_norm": True},
            representation_size=8,
        ),
    ]
    model, path, report = exported
    models, reports = {path: model}, {path: report}
    for i, options in enumerate(rows):
        path = tmp_path / f"{i}.tflite"
        models[path] = shaken(tiny(**options))
        reports[path] = export_tflite(models[path], path, images=IMAGES)
    np.save(tmp_path / "images.npy", IMAGES.astype("float32"))
    subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "images.npy", *models], check=True, cwd=tmp_path)
    for (path, model), options in zip(models.items(), [{}, *rows]):
        report = reports[path]
        assert report.bytes == path.stat().st_size and report.agreement == 1
        assert report.operators["FULLY_CONNECTED"] > 3 and not any(name.startswith("Flex") for name in report.operators)
        expected = model.predict(IMAGES, verbose=0)
        tolerance = 0.05 if "dtype" in options else 1e-4  # the export is float32
        np.testing.assert_allclose(np.load(f"{path}.npy"), expected, atol=tolerance * np.abs(expected).max())


def test_batches_of_your_size(tmp_path, untimed):
    report = export_tflite(tiny(), tmp_path / "model.tflite", batch_size=5, images=IMAGES)
    assert report.agreement == 1


def test_operators_that_litert_lacks_are_in_the_error(tmp_path):
    inputs = keras.Input((12, 8, 3))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(keras.ops.erf(inputs)))
    with pytest.raises(RuntimeError, match=r"no built-in operators for: Erf\."):
        export_tflite(model, tmp_path / "model.tflite")
    assert not list(tmp_path.iterdir())


def test_bad_input_is_an_error_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="model.bin"):
        export_tflite(tiny(), tmp_path / "model.bin")
    with pytest.raises(ValueError, match="batch_size=0"):
        export_tflite(tiny(), tmp_path / "model.tflite", batch_size=0)
    (tmp_path / "model.tflite").write_text("mine")
    with pytest.raises(FileExistsError, match="model.tflite"):
        export_tflite(tiny(), tmp_path / "model.tflite")
    assert (tmp_path / "model.tflite").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
