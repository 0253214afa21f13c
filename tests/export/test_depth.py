"""Published models of depth and poses leave as every kind of file, whose outputs are named and compared."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.export import runtimes
from tests.checkpoints.helpers import GOLDEN
from tests.marks import slow

CASES = [("depth_anything", "depth"), ("dpt_depth", "depth"), ("vitpose", "heatmaps")]


@slow
@pytest.mark.compiled
@pytest.mark.parametrize("case, name", [CASES[0], *(pytest.param(*case, marks=slow) for case in CASES[1:])])
def test_files(case, name, tmp_path):
    model = keras_vit.from_checkpoint(GOLDEN.parent / "depth" / case / "checkpoint.safetensors")
    images = np.random.default_rng(0).integers(0, 256, (3, *model.input_shape[1:])).astype("float32")
    wanted = np.asarray(model(images))
    report = keras_vit.export_tflite(model, tmp_path / "m.tflite")
    assert report.max_abs_diff < 1e-4 * report.range and report.agreement > 0.999
    assert not [operator for operator in report.operators if operator.startswith("Flex")]
    keras_vit.export_saved_model(model, tmp_path / "m")
    for reader, file in ((runtimes.tflite, "m.tflite"), (runtimes.saved_model, "m")):
        np.testing.assert_allclose(reader(tmp_path / file)[0](images), wanted, atol=1e-4 * np.ptp(wanted))
    import tensorflow as tf

    served = tf.saved_model.load(str(tmp_path / "m")).signatures["serving_default"]
    assert list(served.structured_outputs) == [name]
