import shutil

import keras
import numpy as np
import pytest
from keras import layers, ops

pytest.importorskip("tensorflow")

from keras_vit import PatchEncoder, Patches, TransformerBlock, export_tflite
from keras_vit.export import ranks, runtimes
from tests.export.small import CALIBRATION, tiny
from tests.marks import few, slow

SHAPE = (12, 8, 3)
TABLE = np.random.default_rng(1).normal(size=(12, 24)).astype("float32")


def tokens():
    inputs = keras.Input(SHAPE)
    return inputs, layers.Dense(24)(layers.Reshape((12, 24))(layers.Rescaling(1 / 127.5, -1)(inputs)))


def classified(inputs, x):
    return keras.Model(inputs, layers.Dense(4)(layers.Flatten()(x)))


def encoder_alone():
    inputs = keras.Input(SHAPE)
    x = Patches(4)(layers.Rescaling(1 / 127.5, -1)(inputs))
    return classified(inputs, PatchEncoder(24, class_token=False)(x))


def tables():
    """A table by every operation, whole, of one column, and of rows and columns."""
    inputs, x = tokens()
    x = layers.Dense(24, "relu")(x + TABLE)
    x = layers.Dense(24)(ops.subtract(TABLE[None], x))
    x = layers.Dense(24)(x * TABLE[:, :1])
    x = ops.maximum(layers.Dense(24)(x), TABLE)
    return classified(inputs, x / (4 + np.abs(TABLE)))


def block_alone():
    inputs, x = tokens()
    return classified(inputs, TransformerBlock(2, 48)(x))


def dense_on_maps():
    inputs = keras.Input(SHAPE)
    x = layers.Conv2D(24, 4, 4)(layers.Rescaling(1 / 127.5, -1)(inputs))
    return classified(inputs, layers.Dense(24)(layers.Reshape((6, 24))(x)) + TABLE[:6])


def one_tensor_twice():
    inputs, x = tokens()
    return classified(inputs, layers.Attention()([x, x]))


FLOATS, DYNAMIC, INT8 = {}, {"quantize": "dynamic"}, {"quantize": "int8"}
HALF, INTEGER = {"quantize": "float16"}, {"quantize": "int8", "target": "integer"}
CASES = [
    (encoder_alone, DYNAMIC),
    (tables, FLOATS),
    (block_alone, INTEGER),
    (dense_on_maps, INT8),
    (one_tensor_twice, FLOATS),
]
RARE = [
    (encoder_alone, FLOATS),
    *[(tables, settings) for settings in (HALF, DYNAMIC, INT8, INTEGER)],
    *[(dense_on_maps, settings) for settings in (FLOATS, DYNAMIC)],
    (one_tensor_twice, INTEGER),
]


@few(2)
@pytest.mark.parametrize(
    "make, settings",
    [*CASES, *(pytest.param(*case, marks=slow) for case in RARE)],
    ids=lambda value: "-".join(value.values()) or "float32" if isinstance(value, dict) else value.__name__,
)
def test_plain_keras_is_right_on_the_gpu_too(make, settings, tmp_path, vulkan, untimed):
    calibration = {"calibration": CALIBRATION} if settings.get("quantize") == "int8" else {}
    report = export_tflite(make(), tmp_path / "m.tflite", images=CALIBRATION[:4], **settings, **calibration)
    assert report.on("GPU").share == "all", report.on("GPU").note
    exact = settings.get("quantize") in (None, "float16")
    assert report.on("GPU").max_abs_diff < (1e-5 if exact else 0.05) * report.range


def before_and_after(tmp_path, monkeypatch, model, **settings):
    """Exports without the rewriting, then rewrites a copy of the file."""
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    with monkeypatch.context() as patch:
        patch.setattr(ranks, "align", lambda path, delegate: None)
        export_tflite(model, before, **settings)
    shutil.copy(before, after)
    ranks.align(after)
    return before, after


@few(1)
@pytest.mark.parametrize("quantize", [None, "dynamic", pytest.param("float16", marks=slow)])
def test_it_costs_one_reshape_and_no_cut(quantize, tmp_path, untimed, monkeypatch):
    before, after = before_and_after(tmp_path, monkeypatch, tiny(pooling="gap"), quantize=quantize)
    monkeypatch.undo()
    profile = runtimes.profile(after)
    assert profile["partitions"] == 1 and profile["outside"] == {}
    operators = runtimes.tflite(before)[1]
    assert runtimes.tflite(after)[1] == {**operators, "RESHAPE": operators["RESHAPE"] + 1}


def test_a_file_without_such_forms_stays_as_it_is(tmp_path, untimed, monkeypatch):
    before, after = before_and_after(tmp_path, monkeypatch, tiny())
    assert before.read_bytes() == after.read_bytes()
