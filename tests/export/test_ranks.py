import keras
import numpy as np
import pytest
from keras import layers, ops

pytest.importorskip("tensorflow")

from keras_vit import PatchEncoder, Patches, TransformerBlock, export_tflite
from keras_vit.export import runtimes
from tests.export.test_saved_model import tiny

SHAPE = (12, 8, 3)
IMAGES = np.random.default_rng(0).integers(0, 256, (40, *SHAPE)).astype("uint8")
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
    (encoder_alone, FLOATS, DYNAMIC),
    (tables, FLOATS, HALF, DYNAMIC, INT8, INTEGER),
    (block_alone, INTEGER),
    (dense_on_maps, FLOATS, DYNAMIC, INT8),
    (one_tensor_twice, FLOATS, INTEGER),
]


@pytest.mark.parametrize(
    "make, settings",
    [(make, settings) for make, *formats in CASES for settings in formats],
    ids=lambda value: "-".join(value.values()) or "float32" if isinstance(value, dict) else value.__name__,
)
def test_plain_keras_is_right_on_the_gpu_too(make, settings, tmp_path, vulkan):
    given = {"calibration": IMAGES} if settings.get("quantize") == "int8" else {}
    report = export_tflite(make(), tmp_path / "m.tflite", images=IMAGES[:4], **settings, **given)
    assert report.gpu == "all", report.gpu_note
    exact = settings.get("quantize") in (None, "float16")
    assert report.gpu_max_abs_diff < (1e-5 if exact else 0.05) * report.range


@pytest.mark.parametrize("quantize", [None, "float16", "dynamic"])
def test_it_costs_one_reshape_and_no_cut(quantize, tmp_path, monkeypatch):
    after = export_tflite(tiny(pooling="gap"), tmp_path / "after.tflite", quantize=quantize)
    monkeypatch.setattr("keras_vit.export.ranks.align", lambda path: None)
    before = export_tflite(tiny(pooling="gap"), tmp_path / "before.tflite", quantize=quantize)
    assert after.partitions == 1 and after.outside == {}
    assert after.operators == {**before.operators, "RESHAPE": before.operators["RESHAPE"] + 1}


def test_a_file_without_such_forms_stays_as_it_is(tmp_path, monkeypatch):
    model = tiny()
    export_tflite(model, tmp_path / "after.tflite")
    monkeypatch.setattr("keras_vit.export.ranks.align", lambda path: None)
    export_tflite(model, tmp_path / "before.tflite")
    ours, theirs = (runtimes.tflite(tmp_path / f"{name}.tflite") for name in ("after", "before"))
    assert ours[1] == theirs[1]
    np.testing.assert_array_equal(ours[0](IMAGES[:2]), theirs[0](IMAGES[:2]))
