import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.export import prepare, runtimes
from keras_vit.traits import Traits
from keras_vit.utils.keras_private import tflite_operators
from tests.marks import slow


def op(name, inputs, outputs):
    return {"op_name": name, "inputs": inputs, "outputs": outputs}


def test_what_a_delegate_took_over_is_found_by_its_ends():
    operators = [op("A", [0, 9], [1]), op("B", [1], [2]), op("C", [2], [3]), op("D", [3], [4]), op("E", [4, 1], [5])]
    assert runtimes._outside(operators, []) == [0, 1, 2, 3, 4]
    assert runtimes._outside(operators, [op("DELEGATE", [0, 9], [2, 1]), op("DELEGATE", [3], [4])]) == [2, 4]
    assert runtimes._outside(operators, [op("DELEGATE", [0, 9], [5])]) == []


def test_some_operators_run_alone(exported):
    path = exported[1]
    operators = [o["op_name"] for o in tflite_operators(runtimes.opened(path, 1))]
    keep = [i for i, name in enumerate(operators) if name == "SOFTMAX"]
    part = runtimes._part(path, keep)
    inputs, outputs = part.get_input_details(), part.get_output_details()
    assert len(inputs) == len(outputs) == len(keep) > 0
    part.set_tensor(inputs[0]["index"], np.zeros(inputs[0]["shape"], "float32"))
    part.invoke()
    np.testing.assert_allclose(part.get_tensor(outputs[0]["index"]).sum(-1), 1, rtol=1e-5)


def test_a_profile_has_time_and_memory(exported):
    report = exported[2]
    assert set(report.ms) == {"1", "2"} and all(ms > 0 for ms in report.ms.values())
    assert report.partitions == 1 and report.outside == {} and report.outside_time == 0
    assert report.memory_mb is None or 0 < report.memory_mb < 50


@slow
def test_boxes_in_pixels_and_scores_are_the_models_output(tmp_path):
    task = keras_vit.Detect(classes=("a", "b"), most=7, head={"kind": "points", "width": 4})
    model = task.model(variant="mu/8", image_size=(32, 24), stem=((4, 2),))
    rng = np.random.default_rng(0)
    for variable in model.get_layer("head").trainable_weights:
        variable.assign(rng.normal(size=variable.shape) * 0.3)
    images = rng.integers(0, 256, (3, 32, 24, 3)).astype("float32")
    expected = np.asarray(model(images))
    named = {name: np.asarray(value) for name, value in prepare.named_outputs(Traits(model), expected, False).items()}
    assert named["boxes"].shape == (3, 7, 4) and named["boxes"][..., 3].max() > 10
    np.testing.assert_allclose(runtimes.packed(named, (32, 24)), expected, rtol=1e-6)
    report = keras_vit.export_tflite(model, tmp_path / "m.tflite", images=images)
    assert report.agreement == 1 and report.range > 0.1
    np.testing.assert_allclose(runtimes.tflite(tmp_path / "m.tflite")[0](images), expected, atol=1e-4)
    keras_vit.export_saved_model(model, tmp_path / "saved", images=images)
    np.testing.assert_allclose(runtimes.saved_model(tmp_path / "saved")[0](images), expected, atol=1e-5)
