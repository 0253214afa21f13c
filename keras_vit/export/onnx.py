"""Exports to ONNX, for other runtimes than TensorFlow's."""

import json
import os
from collections.abc import Callable, Sequence

import keras
import numpy as np

from keras_vit.export import comparison, matrices, prepare, runtimes, sequence
from keras_vit.export.examples import drawn
from keras_vit.export.forms import export_copy
from keras_vit.models.inputs import TYPES, fed, first, named
from keras_vit.traits import Traits


def export_onnx(
    model: keras.Model,
    path: os.PathLike | str,
    *,
    images: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    score: Callable | None = None,
    labels: Sequence[str] | None = None,
    probabilities: bool = False,
    overwrite: bool = False,
) -> comparison.Report:
    """Writes an ONNX file that takes raw pixels, runs it in ONNX Runtime and compares it with the model.

    The file is in float32. Its input is `images`, any number of them with pixels 0..255; its output is `logits`, or
    `probabilities`. `PATH.json` next to it holds the report and the labels; the file's own metadata have the labels,
    how to resize images and the shape and range of the pixels too, each as JSON. Weights of 2 GB or more are
    external data in `PATH.data`. Of models of texts, see `export_tflite`; here the batch is free too.

    Args:
        model: A Keras model from pixels to logits, under any precision policy; or from ids of texts, or a dictionary
            of `images` and `texts`, int32 ids.
        path: File to write, ending in `.onnx`; must not exist.
        images: Pixels to compare on, `(batch, height, width, channels)`, 0..255, or what else the model takes: ids of
            texts, `(batch, length)`, or a dictionary of both; random ones if `None`.
        classes: Integer class labels of `images`; the report then includes top-1 accuracy.
        score: Function from outputs to a dictionary such as `{"mean_iou": 0.9}`. The report has the value of its first
            entry for the file and for the model.
        labels: Names of the classes in order, for the JSON; those in the model's metadata if `None`.
        probabilities: Whether the output is the softmax of the logits; of a model of several labels, the sigmoids.
        overwrite: Whether to replace an existing `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false.
        ValueError: If `path` does not end in `.onnx`, or images, classes or labels do not match the model.
        ImportError: If tf2onnx, onnx or onnxruntime is not installed.
        RuntimeError: If the backend is not TensorFlow, or the outputs of file and model differ; no file is kept then.
    """
    compared = images, classes, score
    export = sequence.checked(
        "An ONNX file", model, path, ".onnx", compared, labels, probabilities, overwrite, limit=float("inf")
    )
    prepare.need(onnx=True)
    return sequence.written(export, lambda path: _write(model, path, probabilities, export.facts), runtimes.onnx)


def _write(model, path, probabilities, facts):
    """Writes a model, with its outputs by name."""
    import onnx

    model = export_copy(model, erf=True)
    about = Traits(model)
    shapes = about.inputs
    inputs = {name: keras.Input(shape, dtype=TYPES[name], name=name) for name, shape in shapes.items()}
    outputs = prepare.named_outputs(about, model(fed(inputs, shapes), training=False), probabilities)
    last = keras.layers.Activation("linear", dtype="float32")
    outer = keras.Model(inputs, {name: last(output) for name, output in outputs.items()})
    example = named(first(drawn(about), 1), shapes)
    written = matrices.converted(outer, example, path, free=example)
    _round_up_scales(written.graph)
    for each in (*written.graph.input, *written.graph.output):
        each.type.tensor_type.shape.dim[0].dim_param = "batch"  # tf2onnx gives each a name of its own
    onnx.helper.set_model_props(written, {name: json.dumps(value) for name, value in facts.items()})
    matrices.save(written, path, model)


def _round_up_scales(graph):
    """Makes fractional scales of `Resize` the next larger number: 5 * 1.8 must not be rounded down to 8 pixels."""
    from onnx import numpy_helper

    scales = {node.input[2] for node in graph.node if node.op_type == "Resize" and len(node.input) == 3}
    for tensor in (tensor for tensor in graph.initializer if tensor.name in scales):
        values = numpy_helper.to_array(tensor)
        values = np.where(values % 1 == 0, values, np.nextafter(values, np.float32(np.inf)))
        tensor.CopyFrom(numpy_helper.from_array(values.astype("float32"), tensor.name))
