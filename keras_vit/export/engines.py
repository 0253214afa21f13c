"""Functions from pixels to a model's outputs: by OpenVINO, by TFLite, by Keras, and how long each takes."""

import pathlib
import statistics
import tempfile
import threading
import time

import keras
import numpy as np

from keras_vit.export import openvino, prepare, runtimes, tflite
from keras_vit.export.forms import copied, export_copy
from keras_vit.traits import Traits
from keras_vit.utils import checks, extras
from keras_vit.utils.keras_private import sublayers

DTYPES = {"float32": ("f32", "float32"), "bfloat16": ("bf16", "mixed_bfloat16")}  # OpenVINO's word, Keras's policy
ROUNDS = 7  # of timing, at most
SECONDS = 3.0  # after which no round begins


def by_openvino(model, dtype, batch_size, threads=None):
    """Returns the function from a batch of pixels to a list of arrays by OpenVINO.

    Args:
        model: The model, which it copies.
        dtype: `"float32"` or `"bfloat16"`.
        batch_size: Number of images of most batches, for which the model is compiled: 0.8 of the time that it takes
            compiled for any number, as it is too, for other batches. Both hold the weights.
        threads: Threads of a call; all cores if `None`.

    Raises:
        ImportError: If OpenVINO is not installed.
        ValueError: For bfloat16 on a processor that does not have it.
        RuntimeError: If OpenVINO cannot compute the model.
    """
    extras.need("The engine OpenVINO", "openvino", "openvino")
    if dtype == "bfloat16" and not runtimes.openvino_has("BF16"):
        raise ValueError(f"This processor has no instructions for bfloat16. Received: dtype={checks.shown(dtype)}")
    _need_tensorflow("OpenVINO")
    shape = tuple(model.inputs[0].shape[1:])
    _check_outputs(model)
    try:
        copy = export_copy(model)

        def named_outputs(pixels):
            outputs = keras.tree.flatten(copy(pixels, training=False))
            return {f"output_{i}": output for i, output in enumerate(outputs)}

        converted = openvino.converted(named_outputs, {"images": shape})
        fixed = converted.clone()
        fixed.reshape([batch_size, *shape])
        any_number, whole = (runtimes.Compiled(each, DTYPES[dtype][0], threads) for each in (converted, fixed))
    except Exception as error:  # OpenVINO's own classes are not public
        raise RuntimeError(f"OpenVINO cannot compute {model.name!r}: {_said(error)}") from error

    def compute(images):
        outputs = (whole if len(images) == batch_size else any_number)(images)
        return [outputs[f"output_{i}"] for i in range(len(outputs))]

    return compute


def _need_tensorflow(engine):
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            f"A model is converted for {engine} by TensorFlow: save it as .keras, and load it with "
            f"KERAS_BACKEND=tensorflow. Received: backend {keras.backend.backend()!r}"
        )


def _check_outputs(model):
    """Raises RuntimeError for outputs that OpenVINO cannot name: a tensor twice, or an input."""
    outputs = [id(output) for output in model.outputs]
    if len(set(outputs)) < len(outputs):
        raise RuntimeError(f"OpenVINO cannot compute {model.name!r}: it returns one tensor as two outputs")
    if {id(each) for each in model.inputs} & {*outputs}:
        raise RuntimeError(f"OpenVINO cannot compute {model.name!r}: it returns its input as an output")


def by_tflite(model, dtype, batch_size, threads=None):
    """Returns the function from a batch of pixels to a list of arrays by TFLite, image by image, in float32.

    One thread at a time calls it. Arguments as in `by_openvino`.

    Raises:
        ValueError: For another type.
        RuntimeError: If TFLite cannot compute the model.
    """
    if dtype != "float32":
        raise ValueError(f"TFLite computes in float32 on processors. Received: dtype={checks.shown(dtype)}")
    _need_tensorflow("TFLite")
    try:
        prepare.check_model(Traits(model))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = pathlib.Path(folder, "model.tflite")
            tflite.convert(export_copy(model), path)
            run, operators = runtimes.tflite(path, threads)
    except Exception as error:  # the converter's own class is not public
        raise RuntimeError(f"TFLite cannot compute {model.name!r}: {_said(error)}") from error
    if flex := [name for name in operators if name.startswith("Flex")]:
        raise RuntimeError(f"TFLite cannot compute {model.name!r}: it needs {', '.join(flex)}")
    lock = threading.Lock()

    def compute(images):
        with lock:
            return [run(np.asarray(images, "float32"))]

    return compute


def _said(error):
    """Returns the last line of an error, which in OpenVINO's says most; its class if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def by_keras(model, dtype, batch_size, threads=None):
    """Returns the function from a batch of pixels to a list of arrays by Keras; one thread at a time computes.

    Batches of `batch_size` are compiled by XLA in float32: in bfloat16, it is slower on CPUs. Arguments as in
    `by_openvino`, but that threads are TensorFlow's own.

    Raises:
        ValueError: For a model that Keras cannot clone in another precision than its own.
    """
    try:
        copy = copied(model, DTYPES[dtype][1])
    except ValueError:
        copy = model
    if copy is model:
        return _by_values(model, dtype)
    lock, runs = threading.Lock(), {None: keras.Model(copy.inputs, copy.outputs)}
    if dtype == "float32":
        runs[batch_size] = keras.Model(copy.inputs, copy.outputs)
        runs[batch_size].compile(jit_compile=True)

    def compute(images):
        with lock:
            run = runs.get(len(images), runs[None])
            images = np.asarray(images, "float32")  # each other type would be traced and compiled again
            return [np.asarray(x) for x in keras.tree.flatten(run.predict_on_batch(images))]

    try:
        compute(np.zeros((batch_size, *copy.inputs[0].shape[1:]), "float32"))
    except Exception:  # an operation that XLA does not have
        runs.pop(batch_size, None)
    return compute


def _by_values(model, dtype):
    """Returns the function by the layers of a model that Keras cannot clone, and copies of its weights."""
    if dtype != "float32" or not in_float32(model):
        computed = sorted({layer.compute_dtype for layer in sublayers(model)})
        raise ValueError(
            f"Keras cannot clone {model.name!r}, so it is computed in {', '.join(computed)} only: give each of its "
            f"layers a whole `get_config`. Received: dtype={checks.shown(dtype)}"
        )
    trained, others = (
        [keras.ops.convert_to_tensor(keras.ops.convert_to_numpy(v).copy()) for v in variables]
        for variables in (model.trainable_variables, model.non_trainable_variables)
    )
    lock = threading.Lock()

    def compute(images):
        with lock:
            outputs, _ = model.stateless_call(trained, others, keras.ops.convert_to_tensor(images), training=False)
        return [keras.ops.convert_to_numpy(x) for x in keras.tree.flatten(outputs)]

    return compute


def in_float32(model):
    """Returns whether a model computes in float32, as quantized ones do between their products of integers."""
    return {layer.compute_dtype for layer in sublayers(model)} == {"float32"}


BY = {"openvino": by_openvino, "tflite": by_tflite, "keras": by_keras}


def milliseconds(functions, images):
    """Returns the median time of each function for these images, all functions in turns: a dictionary as they are."""
    times_of, begun = {name: [] for name in functions}, time.perf_counter()
    for _ in range(ROUNDS):
        for name, function in functions.items():
            before = time.perf_counter()
            function(images)
            times_of[name].append(1e3 * (time.perf_counter() - before))
        if time.perf_counter() - begun > SECONDS:
            break
    return {name: statistics.median(times) for name, times in times_of.items()}
