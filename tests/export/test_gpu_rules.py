import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit.export import gpu_rules  # noqa: E402
from tests.export.small import tiny  # noqa: E402
from tests.marks import few, slow  # noqa: E402
from tests.models.test_merging import random_vit  # noqa: E402

CASES = {
    "GATHER with indices of 2 axes, int32": lambda x: tf.gather(
        tf.reshape(x, (4, 18)), tf.cast(tf.reshape(x, (-1, 2))[:2], "int32")
    ),
    "BROADCAST_TO not known": lambda x: tf.broadcast_to(tf.reduce_mean(x, 1, keepdims=True), (1, 4, 6, 3)),
    "STRIDED_SLICE of 2 axes": lambda x: tf.reshape(x, (4, 18))[:2, 3:],
    "STRIDED_SLICE with shrinkAxisMask": lambda x: x[:, 1],
    "PAD of 2 axes": lambda x: tf.pad(tf.reshape(x, (4, 18)), ((0, 0), (0, 2))),
    "TRANSPOSE of 5 axes": lambda x: tf.transpose(tf.reshape(x, (1, 2, 2, 6, 3)), (0, 2, 1, 4, 3)),
    "ADD of shapes [1, 4, 6, 3] and [6, 3]": lambda x: x + tf.reduce_max(x, (0, 1)),
    "MUL of shapes [4, 6, 3] and [6, 3]": lambda x: tf.reshape(x, (4, 6, 3)) * tf.reduce_max(x, (0, 1)),
    "SELECT_V2 from a shape [3]": lambda x: tf.where(x > 0, x, tf.reduce_max(x, (0, 1, 2))),
    "ONE_HOT of indices of shape [4, 6, 3]": lambda x: tf.one_hot(tf.cast(x[0], "int32"), 4),
    "MIRROR_PAD that is not reflective": lambda x: tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "SYMMETRIC"),
    "CAST from int32 to int64": lambda x: tf.cast(tf.cast(x, "int32"), "int64"),
}


@pytest.mark.parametrize("reason", CASES)
def test_what_the_rules_refuse_is_named(reason, tmp_path):
    function = tf.function(CASES[reason], input_signature=[tf.TensorSpec((1, 4, 6, 3))])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (tmp_path / "a.tflite").write_bytes(converter.convert())
    assert gpu_rules.refused(tmp_path / "a.tflite").get(reason, 0) >= 1


ALLOWED = {
    "a batch of one": lambda x: x + tf.reduce_max(x, 0),
    "a scalar": lambda x: tf.where(x > 0, x, 0.0) * tf.reduce_max(x, (0, 1, 2))[:1],
    "channels of each image": lambda x: x * tf.reduce_max(x, (1, 2)),
    "a reflection": lambda x: tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "REFLECT"),
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_the_rules_allow_is_not_named(what, tmp_path):
    function = tf.function(ALLOWED[what], input_signature=[tf.TensorSpec((1, 4, 6, 3))])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (tmp_path / "a.tflite").write_bytes(converter.convert())
    named = {name.split()[0] for name in gpu_rules.refused(tmp_path / "a.tflite")}
    assert not named & {"ADD", "MUL", "SELECT", "SELECT_V2", "MIRROR_PAD"}


MODELS = {
    "plain": tiny,
    "distilled": lambda: tiny(
        tokens={"distilled": True, "registers": 2}, block={"gelu": "exact", "qk_norm": True, "layer_scale": 0.1}
    ),
    "map": lambda: tiny(pooling="map", block={"swiglu": True}),
    "stem": lambda: tiny(stem="conv", patch_size=1, pooling="gap"),
    "merged": lambda: keras_vit.merge_tokens(random_vit(), 3),
    "cifar10_hybrid": lambda: keras_vit.from_recipe("cifar10_hybrid", pretrained=True),
    "nuclei": lambda: keras_vit.from_recipe("nuclei", pretrained=True),
}
MERGING = {"EQUAL", "LESS", "LOG", "REDUCE_MIN", "SQUARE"}  # what MediaTek's compiler lacks


@few(2)
@pytest.mark.parametrize("name", [n if n in ("distilled", "stem") else pytest.param(n, marks=slow) for n in MODELS])
@pytest.mark.parametrize("quantize", [None, "float16"])
def test_files_in_float16_have_nothing_that_is_refused_others_only_sums(name, quantize, tmp_path, untimed):
    """By the rules for GPUs; by those for NPUs no file has anything, but for merging on MediaTek's."""
    report = keras_vit.export_tflite(MODELS[name](), tmp_path / "a.tflite", quantize=quantize)
    assert report.npu_refused["Qualcomm"] == {} and "by their lists: Qualcomm none; MediaTek" in str(report)
    refused = {operator.removesuffix(" not known") for operator in report.npu_refused["MediaTek"]}
    assert refused == (MERGING if name == "merged" else set())
    if quantize == "float16":
        assert report.refused == {} and "by its rules: none" in str(report)
    else:
        assert {name.split()[0] for name in report.refused} <= {"ADD"}
