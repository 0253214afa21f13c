"""ONNX from Keras's exporter, in little memory: large matrices are inputs of the graph that is converted.

tf2onnx copies constants in each of its passes, which took 19 GB for the 0.3 of B/16.
"""

import contextlib
import io
import logging
import math
import warnings

import keras
import numpy as np

from keras_vit.export import prepare
from keras_vit.utils.keras_private import constants_as_arrays, sublayers

LARGE = 2**16  # numbers of a matrix
# What tf2onnx leaves of a function that Keras lets XLA compile.
COMPILED = ("StatefulPartitionedCall", "a function of XLA, such as a convolution in groups")


class WithMatrices(keras.Model):
    """A model whose call takes some of its weights too, by name."""

    def __init__(self, model, matrices):
        super().__init__()
        self.inner = model
        self.apart = matrices

    def call(self, inputs):
        with keras.StatelessScope([(variable, inputs[name]) for name, variable in self.apart.items()]):
            return self.inner({name: x for name, x in inputs.items() if name not in self.apart})


def converted(model, examples, path, free=()):
    """Returns the ONNX form of a model.

    Args:
        model: A Keras model in float32 that takes a dictionary and returns one, made for this export.
        examples: What the model is called with, arrays by the names of the inputs.
        path: A file that is written on the way.
        free: Names of the inputs whose first axis may have any length.
    """
    import onnx

    _as_numbers(model)
    large = [each for each in model.weights if len(each.shape) == 2 and math.prod(each.shape) >= LARGE]
    matrices = {f"matrix_{i}": each for i, each in enumerate(large)}
    inputs = keras.tree.map_structure(keras.ops.convert_to_tensor, {**examples, **matrices})
    outer = WithMatrices(model, matrices)
    outer(inputs)  # Keras exports what was called
    shapes = {name: (None if name in free else x.shape[0], *x.shape[1:]) for name, x in inputs.items()}
    specs = {
        name: keras.InputSpec(keras.backend.standardize_dtype(inputs[name].dtype), shape, name=name)
        for name, shape in shapes.items()
    }
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), _silent("tf2onnx"):
        warnings.simplefilter("ignore", FutureWarning)  # of NumPy, caused by Keras's exporter
        outer.export(str(path), format="onnx", input_signature=[specs], verbose=False)
    written = onnx.load(path)
    _by_erf(written.graph)
    _check_operators(written)
    inputs_left = [each for each in written.graph.input if each.name not in matrices]
    if more := [each.name for each in inputs_left if each.name.partition(":")[0] not in examples]:
        raise RuntimeError(
            f"The graph would take {', '.join(more)} as inputs: the model keeps tensors that are no weights. Make them "
            "NumPy arrays."
        )
    del written.graph.input[:]
    written.graph.input.extend(inputs_left)
    used = dict.fromkeys(name for name in _read(written.graph) if name in matrices)  # the others stay out of the file
    numbers = (onnx.numpy_helper.from_array(np.asarray(matrices[name]), name) for name in used)
    written.graph.initializer.extend(numbers)
    return written


@contextlib.contextmanager
def _silent(name):
    """Keeps a logger silent, whose messages are of operators that are written otherwise, or are an error here."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _by_erf(graph):
    """Writes the complementary error function, of TensorFlow's exact GELU, as one minus ONNX's error function."""
    from onnx import helper, numpy_helper

    if not any(node.op_type == "Erfc" for node in graph.node):
        return
    one, nodes = numpy_helper.from_array(np.ones((), "float32"), "erfc_one"), []
    for node in graph.node:
        if node.op_type != "Erfc":
            nodes.append(node)
            continue
        (source,), (result,) = node.input, node.output
        nodes.append(helper.make_node("Erf", [source], [f"{result}_erf"], f"{node.name}_erf"))
        nodes.append(helper.make_node("Sub", [one.name, f"{result}_erf"], [result], node.name))
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.append(one)


def _check_operators(written):
    """Raises RuntimeError for operators that ONNX does not have: tf2onnx leaves TensorFlow's in the graph."""
    import onnx

    domains = {opset.domain for opset in written.opset_import}
    others = {
        node.op_type
        for node in written.graph.node
        if node.domain not in domains or (not node.domain and not onnx.defs.has(node.op_type))
    }
    if others:
        named = ", ".join(sorted(others)).replace(*COMPILED)
        raise RuntimeError(f"ONNX has no operators for: {named}.")


def _as_numbers(model):
    """Puts NumPy's arrays in place of tensors that layers keep, such as the mean and the variance of a `Normalization`.

    The exporter takes such a tensor for one more input of the graph; so it does with those that are an argument in a
    functional model, as in `x - mean`.
    """
    constants_as_arrays(model)
    for layer in sublayers(model):
        for name, value in list(vars(layer).items()):
            is_constant = keras.ops.is_tensor(value) and not isinstance(value, keras.Variable)
            if is_constant and not name.startswith("_"):
                setattr(layer, name, keras.ops.convert_to_numpy(value))


def save(written, path, model):
    """Writes the ONNX form of a model, with weights of 2 GB or more as external data in `PATH.data`."""
    import onnx

    large = 4 * model.count_params() > prepare.LIMIT
    onnx.save(written, path, save_as_external_data=large, location=f"{path.name}.data")


def _read(graph):
    """Yields the names of all tensors that nodes of a graph take, and nodes of the graphs inside it."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _read(inner)
