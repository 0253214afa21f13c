import sys
import types

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.export import fastest
from tests.export.small import IMAGES, tiny


def computed(monkeypatch, *, batches=20, seconds=(2.0, 1.0), change=0.0, fails=None):
    """Returns which engine computed each of some batches, and what was said.

    Args:
        batches: Their number.
        seconds: Of a batch, by Keras and by the predictor.
        change: Added to the predictor's outputs.
        fails: Error of building it.
    """
    clock, asked, said, wanted = [0.0], [], [], np.random.default_rng(0).normal(size=(5, 4))

    def engine(name, taken, change):
        def compute(images):
            clock[0] += taken
            asked.append(name)
            return wanted + change

        return compute

    def choose(model, batch_size):
        if fails:
            raise fails
        assert batch_size == len(IMAGES)
        fast = engine("openvino", seconds[1], change)
        fast.engine = "openvino"
        return fast, None

    monkeypatch.setattr(fastest, "choose", choose)
    monkeypatch.setattr(fastest, "time", types.SimpleNamespace(perf_counter=lambda: clock[0]))
    compute = fastest.Fastest("model", engine("keras", seconds[0], 0.0), 5 * batches, said.append)
    for _ in range(batches):
        np.testing.assert_array_equal(compute(IMAGES), wanted)
    return asked, said


def test_openvino_takes_over_where_it_proves_faster_with_the_same_outputs(monkeypatch):
    asked, said = computed(monkeypatch, batches=40)
    assert asked == ["keras"] * 3 + ["openvino"] * 38  # one of them to be compared
    assert said == ["From here on OpenVINO computes, 2.0 times as fast."]


@pytest.mark.parametrize(
    "case",
    [
        {"batches": 30},  # 54 s are left
        {"batches": 40, "seconds": (2.0, 1.7)},
        {"batches": 40, "change": 1e-3},
        {"batches": 40, "change": np.nan},
        {"batches": 40, "fails": RuntimeError("no such operation")},
    ],
)
def test_keras_goes_on_computing_otherwise(case, monkeypatch):
    asked, said = computed(monkeypatch, **case)
    assert asked.count("keras") == case["batches"] and asked[-1] == "keras" and not said


@pytest.mark.parametrize("installed", [True, False])
def test_a_model_s_outputs_stay_the_same(monkeypatch, installed):
    if installed:
        pytest.importorskip("openvino")
    else:
        monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.setattr(fastest, "WORTH", 0.0)
    monkeypatch.setattr(fastest, "FASTER", np.inf)
    model, said = tiny(), []
    wanted = model.predict_on_batch(IMAGES)
    compute = fastest.Fastest(model, model.predict_on_batch, 1000, said.append)
    outputs = [compute(IMAGES) for _ in range(5)]
    assert compute.fast.engine in ("openvino", "tflite", "keras")[0 if installed else 1 :] and len(said) == 1
    np.testing.assert_allclose(outputs, [wanted] * 5, rtol=0, atol=1e-5 * np.ptp(wanted))


def test_keras_goes_on_where_openvino_fails_later():
    def broken(images):
        raise RuntimeError("out of memory")

    said = []
    compute = fastest.Fastest("model", lambda images: images + 1, 100, said.append)
    compute.fast = broken
    np.testing.assert_array_equal(compute(np.zeros((5, 2))), np.ones((5, 2)))
    assert said == ["The faster engine failed: Keras computes again."] and compute.fast is None
