import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit.export import gpu_rules  # noqa: E402
from tests.export.small import tiny  # noqa: E402
from tests.test_merging import random_vit  # noqa: E402

CASES = {
    "GATHER with indices of 2 axes, int32": lambda x: tf.gather(
        tf.reshape(x, (4, 18)), tf.cast(tf.reshape(x, (-1, 2))[:2], "int32")
    ),
    "BROADCAST_TO not known": lambda x: tf.broadcast_to(tf.reduce_mean(x, 1, keepdims=True), (1, 4, 6, 3)),
    "STRIDED_SLICE of 2 axes": lambda x: tf.reshape(x, (4, 18))[:2, 3:],
    "STRIDED_SLICE with shrinkAxisMask": lambda x: x[:, 1],
    "PAD of 2 axes": lambda x: tf.pad(tf.reshape(x, (4, 18)), ((0, 0), (0, 2))),
    "TRANSPOSE of 5 axes": lambda x: tf.transpose(tf.reshape(x, (1, 2, 2, 6, 3)), (0, 2, 1, 4, 3)),
    "CAST from int32 to int64": lambda x: tf.cast(tf.cast(x, "int32"), "int64"),
}


@pytest.mark.parametrize("reason", CASES)
def test_what_the_rules_refuse_is_named(reason, tmp_path):
    function = tf.function(CASES[reason], input_signature=[tf.TensorSpec((1, 4, 6, 3))])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (tmp_path / "a.tflite").write_bytes(converter.convert())
    assert gpu_rules.refused(tmp_path / "a.tflite").get(reason, 0) >= 1


@pytest.mark.parametrize(
    "make",
    [
        tiny,
        lambda: tiny(distilled=True, registers=2, gelu="exact", qk_norm=True, layer_scale=0.1),
        lambda: tiny(pooling="map", swiglu=True),
        lambda: tiny(stem="conv", patch_size=1, pooling="gap"),
        lambda: keras_vit.merge_tokens(random_vit(), 3),
        lambda: keras_vit.from_recipe("cifar10_hybrid", pretrained=True),
        lambda: keras_vit.from_recipe("nuclei", pretrained=True),
    ],
    ids=["plain", "distilled", "map", "stem", "merged", "cifar10_hybrid", "nuclei"],
)
@pytest.mark.parametrize("quantize", [None, "float16"])
def test_files_of_this_package_have_nothing_that_is_refused(make, quantize, tmp_path, untimed):
    report = keras_vit.export_tflite(make(), tmp_path / "a.tflite", quantize=quantize)
    assert report.refused == {} and "by its rules: none" in str(report)
