import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit.export import npu_rules  # noqa: E402
from tests.export.small import tiny  # noqa: E402
from tests.test_merging import random_vit  # noqa: E402

CASES = {
    ("Qualcomm", "FLOOR_MOD not known"): lambda x: tf.math.floormod(x, 2.0),
    ("MediaTek", "SIN not known"): tf.sin,
    ("Qualcomm", "ONE_HOT not known"): lambda x: tf.one_hot(tf.cast(x, "int32"), 4),
    ("MediaTek", "CAST of int64"): lambda x: tf.cast(tf.cast(x, "int64"), "int32"),
}

MERGING = {"EQUAL", "LESS", "LOG", "REDUCE_MIN", "SQUARE"}  # what MediaTek's compiler lacks


@pytest.mark.parametrize("compiler, reason", CASES)
def test_what_a_compiler_refuses_is_named(compiler, reason, tmp_path):
    function = tf.function(CASES[compiler, reason], input_signature=[tf.TensorSpec((1, 4, 6, 3))])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (tmp_path / "a.tflite").write_bytes(converter.convert())
    assert reason in npu_rules.refused(tmp_path / "a.tflite")[compiler]


@pytest.mark.parametrize(
    "make, allowed",
    [
        (tiny, set()),
        (lambda: tiny(distilled=True, registers=2, gelu="exact", qk_norm=True, layer_scale=0.1), set()),
        (lambda: tiny(pooling="map", swiglu=True), set()),
        (lambda: tiny(stem="conv", patch_size=1, pooling="gap"), set()),
        (lambda: keras_vit.merge_tokens(random_vit(), 3), MERGING),
        (lambda: keras_vit.from_recipe("nuclei", pretrained=True), set()),
    ],
    ids=["plain", "distilled", "map", "stem", "merged", "nuclei"],
)
@pytest.mark.parametrize("quantize", [None, "float16"])
def test_files_of_this_package_have_nothing_that_is_refused_but_for_merging(make, allowed, quantize, tmp_path, untimed):
    report = keras_vit.export_tflite(make(), tmp_path / "a.tflite", quantize=quantize)
    assert report.npu_refused["Qualcomm"] == {} and "by their lists: Qualcomm none; MediaTek" in str(report)
    assert {name.removesuffix(" not known") for name in report.npu_refused["MediaTek"]} == allowed
