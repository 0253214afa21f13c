import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.export.operators import operators  # noqa: E402


def test_operators_come_in_order_with_shapes_types_and_constants(tmp_path):
    kernel = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    function = tf.function(lambda x: tf.nn.softmax(x @ kernel), input_signature=[tf.TensorSpec((4, 3))])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (tmp_path / "a.tflite").write_bytes(converter.convert())
    product, softmax = operators(tmp_path / "a.tflite")
    assert (product.name, softmax.name) == ("FULLY_CONNECTED", "SOFTMAX")
    assert product.inputs == [([4, 3], "FLOAT32", False), ([2, 3], "FLOAT32", True)]
    assert product.outputs == softmax.inputs == softmax.outputs == [([4, 2], "FLOAT32", False)]
