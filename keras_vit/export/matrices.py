"""ONNX from Keras's exporter, in little memory: large matrices are inputs of the graph that is converted.

tf2onnx copies constants in each of its passes, which took 19 GB for the 0.3 of B/16.
"""

import contextlib
import io
import math
import warnings

import keras
import numpy as np

from keras_vit.export import prepare
from keras_vit.utils.keras_private import sublayers

LARGE = 2**16  # numbers of a matrix


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
    given = keras.tree.map_structure(keras.ops.convert_to_tensor, {**examples, **matrices})
    outer = WithMatrices(model, matrices)
    outer(given)  # Keras exports what was called
    shapes = {name: (None if name in free else x.shape[0], *x.shape[1:]) for name, x in given.items()}
    specs = {
        name: keras.InputSpec(keras.backend.standardize_dtype(given[name].dtype), shape, name=name)
        for name, shape in shapes.items()
    }
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of NumPy, caused by Keras's exporter
        outer.export(str(path), format="onnx", input_signature=[specs], verbose=False)
    written = onnx.load(path)
    kept = [each for each in written.graph.input if each.name not in matrices]
    del written.graph.input[:]
    written.graph.input.extend(kept)
    used = dict.fromkeys(name for name in _read(written.graph) if name in matrices)  # the others stay out of the file
    numbers = (onnx.numpy_helper.from_array(np.asarray(matrices[name]), name) for name in used)
    written.graph.initializer.extend(numbers)
    return written


def _as_numbers(model):
    """Puts NumPy's arrays in place of tensors that layers keep, such as the mean and the variance of a `Normalization`.

    The exporter takes such a tensor for one more input of the graph.
    """
    for layer in sublayers(model):
        for name, value in list(vars(layer).items()):
            kept = keras.ops.is_tensor(value) and not isinstance(value, keras.Variable)
            if kept and not name.startswith("_"):
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
