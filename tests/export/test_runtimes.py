import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.export import runtimes
from keras_vit.keras_private import tflite_operators


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
