"""Each private attribute of Keras, TensorFlow and LiteRT that the package needs, by name."""

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.training import optimizers
from keras_vit.utils import keras_private
from keras_vit.utils.keras_private import shapes_only

pytestmark = pytest.mark.backend


def small():
    return vit("mu/4", image_size=8, num_classes=2)


def test_layer_flatten_layers():
    block = small().get_layer("block_0")
    names = [layer.name for layer in keras_private.sublayers(block)]
    assert names[0] == "block_0" and {"attention", "qkv", "mlp", "fc1"} <= set(names)
    assert "qkv" not in [layer.name for layer in keras_private.sublayers(block, include_self=False, recursive=False)]


def test_tensor_keras_history_and_operation_inbound_nodes():
    model = small()
    norm = model.get_layer("norm")
    node = keras_private.call_of(norm.output)
    assert node.operation is norm and node.input_tensors == [norm.input]
    assert keras_private.calls_of(norm) == [node] and keras_private.place_of(norm.output) == 0
    first, second = keras.ops.split(norm.output, 2, axis=-1)
    assert [keras_private.place_of(tensor) for tensor in (first, second)] == [0, 1]


def test_layer_call_has_training_arg():
    model = small()
    assert keras_private.takes_training(model.get_layer("block_0"))
    assert not keras_private.takes_training(model.get_layer("norm"))


def test_layer_trainable_variables():
    norm = keras.layers.BatchNormalization()
    norm.build((None, 3))
    norm.gamma.trainable = False
    assert {id(v) for v in keras_private.switched(norm)} == {id(norm.gamma), id(norm.beta)}


def test_layer_call_context():
    class Layer(keras.layers.Layer):
        def call(self, x):
            found.append(keras_private.outermost(self))
            return x

    inputs, found = keras.Input((2,)), []
    model = keras.Model(inputs, Layer()(inputs))
    model(np.ones((1, 2)))
    assert found[-1] is model


def test_dense_kernel():
    dense = keras.layers.Dense(3)
    dense.build((1, 2))
    kernel = keras.ops.convert_to_numpy(dense.kernel)
    dense.enable_lora(1)
    dense.lora_kernel_b.assign(np.ones((1, 3)))
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(keras_private.kernel_without_lora(dense)), kernel)
    assert not np.array_equal(keras.ops.convert_to_numpy(dense.kernel), kernel)


def test_data_layer_get_seed_generator():
    pytest.importorskip("tensorflow")
    layer = keras.layers.RandomFlip(seed=3)
    generator = keras_private.tf_data_generator(layer)
    assert isinstance(generator, keras.random.SeedGenerator) and generator is keras_private.tf_data_generator(layer)
    assert (generator is layer.generator) == (keras.backend.backend() == "tensorflow")
    assert layer.backend.name == keras.backend.backend()


@pytest.mark.parametrize("make", [optimizers.AdamW, keras.optimizers.SGD])
def test_optimizer_averages(make):
    variable = keras.Variable(np.ones(2, "float32"))
    optimizer = make(0.5, use_ema=True, ema_momentum=0.5)
    optimizer.build([variable])
    for _ in range(2):
        optimizer.apply([keras.ops.ones(2)])
    ((found, average),) = keras_private.ema_weights(optimizer)
    assert found is variable and not np.array_equal(
        keras.ops.convert_to_numpy(average.value), keras.ops.convert_to_numpy(variable.value)
    )
    assert keras_private.ema_weights(make(0.5)) == []


def test_optimizer_hooks():
    """Keras calls each of them: decay is of kernels alone and once a step, clipping is by the norm of all gradients."""
    kernel, bias = (keras.Variable(np.ones(2, "float32"), name=name) for name in ("kernel", "bias"))
    optimizer = optimizers.SGD(0.1, weight_decay=0.5, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay([bias])
    optimizer.build([kernel, bias])
    assert [optimizer.index_of(v) for v in (kernel, bias)] == [0, 1]
    assert [optimizer.decays(v) for v in (kernel, bias)] == [True, False]
    optimizer.apply([keras.ops.ones(2) * 10, keras.ops.zeros(2)])
    expected = 1 * (1 - 0.1 * 0.5) - 0.1 / np.sqrt(2)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(kernel.value), expected, rtol=1e-6)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(bias.value), 1)
    names = ("_apply_weight_decay", "_clip_gradients", "_get_variable_index", "_use_weight_decay")
    assert all(hasattr(keras.optimizers.Optimizer, name) for name in names)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="replicas of TensorFlow")
def test_optimizer_all_reduce_sum_gradients():
    assert hasattr(keras.optimizers.Optimizer, "_all_reduce_sum_gradients")


def test_interpreter_get_ops_details(tmp_path):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    tf = pytest.importorskip("tensorflow")
    function = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec((1, 3))])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    opened = interpreter.Interpreter(model_content=converter.convert())
    opened.allocate_tensors()
    assert "MUL" in [operator["op_name"] for operator in keras_private.tflite_operators(opened)]


def test_a_model_without_memory():
    model = shapes_only(lambda: vit("G/14"))
    assert model.count_params() == 1_844_440_680 and tuple(model.get_layer("head").kernel.shape) == (1664, 1000)


def test_what_is_built_next_has_memory():
    shapes_only(lambda: vit("mu/4", image_size=8))
    assert vit("mu/4", image_size=8)(keras.ops.zeros((1, 8, 8, 3))).shape == (1, 1000)


def test_errors_come_through():
    with pytest.raises(ValueError, match="'B16'"):
        shapes_only(lambda: vit("B16"))


@pytest.mark.compiled
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX always compiles")
def test_what_xla_compiles_is_known():
    tf = pytest.importorskip("tensorflow")
    found = []

    def function(x):
        found.append(keras_private.under_xla())
        return keras.ops.fori_loop(0, 2, lambda i, x: found.append(keras_private.under_xla()) or x, x)

    for compiled in (True, False):
        tf.function(function, jit_compile=compiled)(tf.zeros(2))
    assert found == [True, True, False, False] and not keras_private.under_xla()


def test_operation_inbound_nodes_and_their_arguments():
    x = keras.Input((2,))
    inner = keras.Model(x, x * keras.ops.convert_to_tensor(np.array([2.0, 3.0], "float32")))
    y = keras.Input((2,))
    model = keras.Model(y, keras.ops.add(inner(y), keras.ops.convert_to_tensor(np.array([1.0, 1.0], "float32"))))
    before = np.asarray(model(np.ones((1, 2), "float32")))
    keras_private.constants_as_arrays(model)
    given = [value for each in (model, inner) for operation in each.operations for node in operation._inbound_nodes
             for value in keras.tree.flatten((node.arguments.args, node.arguments.kwargs))]  # fmt: skip
    assert sum(isinstance(value, np.ndarray) for value in given) == 2
    assert not any(keras.ops.is_tensor(value) and not isinstance(value, keras.KerasTensor) for value in given)
    np.testing.assert_array_equal(np.asarray(model(np.ones((1, 2), "float32"))), before)
