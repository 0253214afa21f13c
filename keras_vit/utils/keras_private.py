"""Every private attribute of Keras, TensorFlow and LiteRT that this package needs, one function each.

`pyproject.toml` bounds the versions of these libraries by those that the tests of this file were run with.
"""

from concurrent.futures import ThreadPoolExecutor

import keras


def sublayers(layer, *, include_self=True, recursive=True):
    """Returns a layer and the layers inside it, at any depth. Needs `Layer._flatten_layers`."""
    return list(layer._flatten_layers(include_self=include_self, recursive=recursive))


def switched(layer):
    """Returns the weights of a layer itself that its `trainable` freezes. Needs `Layer._trainable_variables`."""
    return list(layer._trainable_variables)


def call_of(tensor):
    """Returns the node of the call that made a symbolic tensor. Needs `KerasTensor._keras_history`."""
    operation, index, _ = tensor._keras_history
    return calls_of(operation)[index]


def place_of(tensor):
    """Returns which output of its call a symbolic tensor is, from 0. Needs `KerasTensor._keras_history`."""
    return tensor._keras_history.tensor_index


def calls_of(operation):
    """Returns the nodes of all symbolic calls of a layer or an operation. Needs `Operation._inbound_nodes`."""
    return list(operation._inbound_nodes)


def calls_after(operation):
    """Returns the nodes of the calls that take an output of a layer or operation. Needs `Operation._outbound_nodes`."""
    return list(operation._outbound_nodes)


def outermost(layer):
    """Returns the layer whose call leads to the present call of a layer; on JAX, inside the model that is trained.

    Needs `Layer._get_call_context` and `CallContext.entry_layer`.
    """
    return layer._get_call_context().entry_layer


def takes_training(operation):
    """Returns whether a layer's call takes `training`. Needs `Layer._call_has_training_arg`."""
    return getattr(operation, "_call_has_training_arg", False)


def kernel_without_lora(dense):
    """Returns the kernel of a dense layer, without its LoRA update. Needs `Dense._kernel`."""
    return dense._kernel


def tf_data_generator(layer):
    """Returns the seed generator from which a preprocessing layer draws inside tf.data, whatever Keras's backend.

    Needs `DataLayer._get_seed_generator` and `DataLayer.backend`.
    """
    layer.backend.set_backend("tensorflow")
    try:
        return layer._get_seed_generator("tensorflow")
    finally:
        layer.backend.reset()


def ema_weights(optimizer):
    """Returns pairs of a trainable variable and its EMA; none without `use_ema`.

    Needs `Optimizer._trainable_variables` and `Optimizer._model_variables_moving_average`.
    """
    if not optimizer.use_ema:
        return []
    return list(zip(optimizer._trainable_variables, optimizer._model_variables_moving_average, strict=True))


def tflite_operators(interpreter):
    """Returns the operators of a TFLite file, as dictionaries. Needs LiteRT's `Interpreter._get_ops_details`."""
    return interpreter._get_ops_details()


def shapes_only(function):
    """Returns `function()`, in which the models that are built have shapes but no memory.

    In a thread of its own: Keras keeps a list of such variables in each thread, and would fill them all later.
    """

    def scoped():
        with keras.StatelessScope(initialize_variables=False):
            return function()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(scoped).result()


class OptimizerHooks:
    """The places in `keras.optimizers.Optimizer` that a subclass cannot change by public methods.

    Weight decay is left to `update_step`, which can look up the variable's place. Gradients are summed over replicas
    before they are clipped: Keras on TensorFlow clips each replica's part by itself.

    Needs `Optimizer._apply_weight_decay`, `_clip_gradients`, `_all_reduce_sum_gradients` (TensorFlow),
    `_get_variable_index` and `_use_weight_decay`.
    """

    def _apply_weight_decay(self, variables):
        pass

    def _clip_gradients(self, grads):
        if hasattr(super(), "_all_reduce_sum_gradients"):
            grads = [grad for grad, _ in super()._all_reduce_sum_gradients([(grad, None) for grad in grads])]
        return super()._clip_gradients(grads)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return grads_and_vars  # they were summed before they were clipped

    def index_of(self, variable):
        """Returns the place of a variable among those that `build` was given."""
        return self._get_variable_index(variable)

    def decays(self, variable):
        """Returns whether weight decay applies to a variable."""
        return bool(self.weight_decay) and not self.leaves_out(variable)

    def leaves_out(self, variable):
        """Returns whether a variable was excluded from weight decay."""
        return not self._use_weight_decay(variable)


class MuonHooks:
    """The place in `keras.optimizers.Muon` that decides which variables it moves.

    Needs `Muon._should_use_adamw`.
    """

    def _should_use_adamw(self, variable):
        if self.is_convolution(variable):
            return False
        return not self.is_in_block(variable) or super()._should_use_adamw(variable)


def under_xla():
    """Returns whether XLA compiles what is computed now. Needs TensorFlow's `GraphOrParentsInXlaContext`."""
    if keras.backend.backend() != "tensorflow":
        return keras.backend.backend() == "jax"
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def constants_as_arrays(model):
    """Puts NumPy's arrays in place of tensors among the arguments of a functional model's calls, at any depth."""
    for each in (model, *sublayers(model)):
        for operation in getattr(each, "operations", ()):
            for node in operation._inbound_nodes:
                arguments = node.arguments
                arguments.args = keras.tree.map_structure(_as_array, arguments.args)
                arguments.kwargs = keras.tree.map_structure(_as_array, arguments.kwargs)


def _as_array(value):
    constant = keras.ops.is_tensor(value) and not isinstance(value, (keras.KerasTensor, keras.Variable))
    return keras.ops.convert_to_numpy(value) if constant else value
