import subprocess
import sys

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit import export_tflite  # noqa: E402
from tests.export.test_saved_model import IMAGES, tiny  # noqa: E402


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(dtype="mixed_bfloat16"),
        dict(dtype="mixed_float16", pooling="gap", position="sincos2d"),
        dict(pooling="map", position="sincos1d"),
        dict(distilled=True, registers=2, gelu="exact", layer_scale=0.1, qk_norm=True, representation_size=8),
    ],
)
def test_runs_without_tensorflow_and_agrees(options, tmp_path):
    model = tiny(**options)
    path = tmp_path / "model.tflite"
    report = export_tflite(model, path, images=IMAGES)
    assert report.bytes == path.stat().st_size and report.agreement == 1
    assert report.operators["FULLY_CONNECTED"] > 3 and not any(name.startswith("Flex") for name in report.operators)
    np.save(tmp_path / "images.npy", IMAGES.astype("float32"))
    script = (
        "import sys, numpy as np\n"
        "from ai_edge_litert.interpreter import Interpreter\n"
        f"run = Interpreter({str(path)!r}).get_signature_runner('serve')\n"
        f"x = np.load({str(tmp_path / 'images.npy')!r})\n"
        f"np.save({str(tmp_path / 'logits.npy')!r}, np.concatenate([run(images=i[None])['logits'] for i in x]))\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
    expected = model.predict(IMAGES, verbose=0)
    tolerance = 0.05 if "dtype" in options else 1e-4  # the export is float32
    np.testing.assert_allclose(np.load(tmp_path / "logits.npy"), expected, atol=tolerance * np.abs(expected).max())


def test_batches_of_your_size(tmp_path):
    report = export_tflite(tiny(), tmp_path / "model.tflite", batch_size=5, images=IMAGES)
    assert report.agreement == 1


def test_operators_that_litert_lacks_are_named(tmp_path):
    inputs = keras.Input((12, 8, 3))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(keras.ops.erf(inputs)))
    with pytest.raises(RuntimeError, match=r"no operators of its own for: Erf\."):
        export_tflite(model, tmp_path / "model.tflite")
    assert not list(tmp_path.iterdir())


def test_bad_input_is_named_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="model.bin"):
        export_tflite(tiny(), tmp_path / "model.bin")
    with pytest.raises(ValueError, match="batch_size=0"):
        export_tflite(tiny(), tmp_path / "model.tflite", batch_size=0)
    (tmp_path / "model.tflite").write_text("mine")
    with pytest.raises(FileExistsError, match="model.tflite"):
        export_tflite(tiny(), tmp_path / "model.tflite")
    assert (tmp_path / "model.tflite").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
