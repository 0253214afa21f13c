import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.export import npu_rules  # noqa: E402

CASES = {
    ("Qualcomm", "FLOOR_MOD not known"): lambda x: tf.math.floormod(x, 2.0),
    ("MediaTek", "SIN not known"): tf.sin,
    ("Qualcomm", "ONE_HOT not known"): lambda x: tf.one_hot(tf.cast(x, "int32"), 4),
    ("MediaTek", "CAST of int64"): lambda x: tf.cast(tf.cast(x, "int64"), "int32"),
}


@pytest.mark.parametrize("compiler, reason", CASES)
def test_what_a_compiler_refuses_is_named(compiler, reason, tmp_path):
    function = tf.function(CASES[compiler, reason], input_signature=[tf.TensorSpec((1, 4, 6, 3))])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (tmp_path / "a.tflite").write_bytes(converter.convert())
    assert reason in npu_rules.refused(tmp_path / "a.tflite")[compiler]
