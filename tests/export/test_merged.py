import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from tests.marks import slow
from tests.models.test_merging import IMAGES, random_vit


@slow
@pytest.mark.parametrize("quantize", ["float16", None, "dynamic"])
def test_tflite_files_merge_tokens_as_the_model_does(quantize, tmp_path, untimed):
    merged = keras_vit.merge_tokens(random_vit(), 3)
    report = keras_vit.export_tflite(merged, tmp_path / "merged.tflite", quantize=quantize, images=IMAGES)
    limit = {None: 1e-5, "float16": 0.01, "dynamic": 0.1}[quantize]
    assert report.max_abs_diff < limit * report.range
    assert not {"GATHER", "GATHER_ND", "TOPK_V2", "BROADCAST_TO", "SCATTER_ND"} & set(report.operators)


@slow
def test_onnx_and_saved_model(tmp_path, untimed):
    pytest.importorskip("tf2onnx")
    merged = keras_vit.merge_tokens(random_vit(pooling="gap"), 3)
    for report in (
        keras_vit.export_onnx(merged, tmp_path / "merged.onnx", images=IMAGES),
        keras_vit.export_saved_model(merged, tmp_path / "merged", images=IMAGES),
    ):
        assert report.max_abs_diff < 1e-5 * report.range


def test_integers_are_refused_before_anything_is_written(tmp_path):
    merged, images = keras_vit.merge_tokens(random_vit(), 3), np.repeat(IMAGES, 12, axis=0)
    with pytest.raises(ValueError, match="Integers cannot hold the places of merged tokens.*'int8'"):
        keras_vit.export_tflite(merged, tmp_path / "merged.tflite", quantize="int8", calibration=images)
    assert not list(tmp_path.iterdir())
