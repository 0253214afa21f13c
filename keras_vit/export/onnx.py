"""ONNX, for runtimes beside TensorFlow's."""

import contextlib
import dataclasses
import io
import warnings

import keras

from keras_vit.export import check, prepare, runtimes
from keras_vit.export.forms import export_copy


def export_onnx(model, path, *, images=None, classes=None, labels=None, probabilities=False, overwrite=False):
    """Writes an ONNX file that takes raw pixels, runs it in ONNX Runtime and compares it with the model.

    In float32, from `images` (0..255, any number of them) to `logits`, or `probabilities`. Beside it `PATH.json` holds
    the report and the labels.

    Args:
        model: A Keras model from pixels to logits, under any precision policy.
        path: File to write, ending in `.onnx`; must not exist.
        images: Pixels to compare on, `(batch, height, width, channels)`, 0..255; random ones if `None`.
        classes: Right classes of `images`, integers; the report then tells top-1 accuracy.
        labels: Names of the classes in order, for the JSON; those that travel with the model if `None`.
        probabilities: Whether it gives the soft-max of the logits.
        overwrite: Whether to replace what is at `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false.
        ValueError: If `path` does not end in `.onnx`; for images, classes or labels that do not fit the model, or a
            model of 2 GB and more.
        ImportError: If tf2onnx, onnx or onnxruntime is not installed.
        RuntimeError: If the backend is not TensorFlow, or the written model gives something else; nothing is kept then.
    """
    prepare.need_tensorflow_backend("An ONNX file")
    if not str(path).endswith(".onnx"):
        raise ValueError(f"An ONNX file ends in .onnx. Received: path={str(path)!r}")
    prepare.need(onnx=True)
    prepare.check_model(model)
    prepare.check_labels(model, labels)
    check.check_classes(model, images, classes)
    images = check.sample(model, images)
    prepare.check_free(f"{path}.json", overwrite)
    with prepare.destination(path, overwrite) as temporary:
        _write(export_copy(model, erf=True), temporary, probabilities)
        try:
            run, operators = runtimes.onnx(temporary)
        except Exception as error:  # ONNX Runtime's own classes are not public
            raise RuntimeError(f"ONNX Runtime cannot run what was written: {str(error).splitlines()[0]}") from None
        report = check.report(temporary, model, images, run, operators, probabilities=probabilities, classes=classes)
    report = dataclasses.replace(report, path=str(path))
    check.write_json(f"{path}.json", report, **prepare.facts(model, labels))
    return report


def _write(model, path, probabilities):
    """Writes a model by Keras's own exporter, which wants one that was called; it has no say in the output's name."""
    import onnx

    pixels = keras.Input(model.input_shape[1:], name="images")
    last = keras.layers.Activation("softmax" if probabilities else "linear", dtype="float32")
    outer = keras.Model(pixels, last(model(pixels, training=False)))
    outer(keras.ops.zeros((1, *model.input_shape[1:])))
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of NumPy, that Keras's exporter calls forth
        outer.export(str(path), format="onnx", verbose=False)
    written = onnx.load(path)
    (output,) = written.graph.output
    before, output.name = output.name, "probabilities" if probabilities else "logits"
    for node in written.graph.node:
        node.input[:] = [output.name if name == before else name for name in node.input]
        node.output[:] = [output.name if name == before else name for name in node.output]
    onnx.save(written, path)
