import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import compare_layers, export_tflite
from tests.export.test_quantize import IMAGES
from tests.export.test_saved_model import tiny


def test_a_damaged_layer_is_found(tmp_path):
    model = tiny()
    export_tflite(model, tmp_path / "a.tflite")
    kernel = model.get_layer("block_0").mlp.fc2.kernel
    kernel.assign(np.asarray(kernel) * 2)
    export_tflite(model, tmp_path / "b.tflite")
    rows = compare_layers(tmp_path / "a.tflite", tmp_path / "b.tflite", IMAGES[:3])
    first = next(row for row in rows if row.error > 1e-4)
    assert "block_0" in first.tensor and "fc2" in first.tensor and first.operator == "FULLY_CONNECTED"
    assert first.error > 0.3 and first.largest > 0.3


def test_integers_are_brought_back_and_little_off(tmp_path):
    model = tiny()
    export_tflite(model, tmp_path / "a.tflite")
    export_tflite(model, tmp_path / "b.tflite", quantize="int8", calibration=IMAGES)
    rows = compare_layers(tmp_path / "a.tflite", tmp_path / "b.tflite", IMAGES[:3])
    products = [row for row in rows if row.operator == "FULLY_CONNECTED"]
    assert len(products) > 3 and all(0 < row.error < 0.1 for row in products)


def test_what_cannot_be_compared_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no.tflite"):
        compare_layers("no.tflite", "no.tflite", IMAGES)
    export_tflite(tiny(), tmp_path / "a.tflite")
    with pytest.raises(ValueError, match=r"shape=\(40, 8, 8, 3\)"):
        compare_layers(tmp_path / "a.tflite", tmp_path / "a.tflite", IMAGES[:, :8])
