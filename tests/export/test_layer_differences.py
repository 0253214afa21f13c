import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import compare_layers, export_tflite
from tests.export.small import CALIBRATION, tiny


def test_a_damaged_layer_is_found(exported, tmp_path, untimed):
    model, path, _ = exported
    damaged = tiny()
    damaged.set_weights(model.get_weights())
    kernel = damaged.get_layer("block_0").mlp.fc2.kernel
    kernel.assign(np.asarray(kernel) * 2)
    export_tflite(damaged, tmp_path / "b.tflite")
    rows = compare_layers(path, tmp_path / "b.tflite", CALIBRATION[:3])
    first = next(row for row in rows if row.error > 1e-4)
    assert "block_0" in first.tensor and "fc2" in first.tensor and first.operator == "FULLY_CONNECTED"
    assert first.error > 0.3 and first.largest > 0.3


def test_integers_are_dequantized_and_differ_little(exported, tmp_path, untimed):
    model, path, _ = exported
    export_tflite(model, tmp_path / "b.tflite", quantize="int8", calibration=CALIBRATION)
    rows = compare_layers(path, tmp_path / "b.tflite", CALIBRATION[:3])
    products = [row for row in rows if row.operator == "FULLY_CONNECTED"]
    assert len(products) > 3 and all(0 < row.error < 0.1 for row in products)


def test_what_cannot_be_compared_is_an_error(exported):
    path = exported[1]
    with pytest.raises(FileNotFoundError, match="no.tflite"):
        compare_layers("no.tflite", "no.tflite", CALIBRATION)
    with pytest.raises(ValueError, match=r"shape=\(40, 8, 8, 3\)"):
        compare_layers(path, path, CALIBRATION[:, :8])
