"""Runs exported files in their own runtimes: outputs, operators, time and memory."""

import collections
import functools
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter

import numpy as np

from keras_vit.models import kinds
from keras_vit.models.inputs import TYPES, named
from keras_vit.utils.cores import cores
from keras_vit.utils.keras_private import tflite_operators

THREADS = (1, 2)
_MEMORY = """
import re, sys
from ai_edge_litert.interpreter import Interpreter
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
before = peak()
interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
for each in interpreter.get_input_details():
    if each["dtype"].__name__ == "int32":
        interpreter.set_tensor(each["index"], interpreter.get_tensor(each["index"]) * 0)
interpreter.invoke()
print((peak() - before) / 1000)
"""


def packed(outputs, size):
    """Returns a file's outputs, a dictionary of arrays by name, as the model's one; `size` is (height, width)."""
    return kinds.of_outputs(outputs).packed(outputs, size)


def saved_model(path, images=None):
    """Loads a SavedModel; returns the function from inputs to outputs, and its operators.

    Args:
        path: The SavedModel.
        images: Images, whose first is run by the signature for encoded files, if there is one: RuntimeError unless its
            outputs are finite.
    """
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))
    if images is not None and "serve_bytes" in loaded.signatures:
        encoded = tf.io.encode_png(tf.cast(tf.round(images[0]), "uint8"))
        outputs = loaded.signatures["serve_bytes"](encoded=tf.stack([encoded])).values()
        if not all(np.isfinite(output.numpy()).all() for output in outputs):
            raise RuntimeError(
                f"The outputs of {str(path)!r} for an encoded file must be finite. The SavedModel was deleted."
            )
    serve = loaded.signatures["serving_default"]
    functions = [serve.graph.as_graph_def().node, *(f.node_def for f in serve.graph.as_graph_def().library.function)]

    specs = serve.structured_input_signature[1]

    def run(examples, keep=loaded):  # the signature alone does not keep its variables alive
        examples = named(examples, specs)
        outputs = serve(**{name: tf.constant(examples[name], spec.dtype) for name, spec in specs.items()})
        return packed({name: output.numpy() for name, output in outputs.items()}, size_of(examples))

    return run, dict(Counter(node.op for nodes in functions for node in nodes).most_common())


def onnx(path):
    """Loads an ONNX file; returns the function from inputs to outputs, and its operators."""
    import onnx
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's own classes are not public
        raise RuntimeError(f"ONNX Runtime cannot run the exported file: {str(error).splitlines()[0]}") from None
    inputs, outputs = ([each.name for each in side] for side in (session.get_inputs(), session.get_outputs()))

    def run(examples):
        examples = named(examples, inputs)
        arrays = session.run(None, {name: examples[name].astype(TYPES[name]) for name in inputs})
        return packed(dict(zip(outputs, arrays)), size_of(examples))

    nodes = onnx.load(str(path), load_external_data=False).graph.node
    return run, dict(Counter(node.op_type for node in nodes).most_common())


def openvino(path, precision="f32"):
    """Loads OpenVINO's IR; returns the function from inputs to outputs, and its operators.

    Args:
        path: The `.xml`.
        precision: `"f32"` or `"bf16"`.
    """
    try:
        model = openvino_core().read_model(path)
        operators = Counter(node.get_type_name() for node in model.get_ops())
        compiled = Compiled(model, precision)
    except Exception as error:  # OpenVINO's own classes are not public
        raise RuntimeError(f"OpenVINO cannot run the exported file: {str(error).strip().splitlines()[-1]}") from None
    fixed = model.input(0).partial_shape[0]
    batch = fixed.get_length() if fixed.is_static else None
    return lambda examples: _in_batches(compiled, named(examples, compiled.inputs), batch), dict(
        operators.most_common()
    )


@functools.cache
def openvino_core():
    """Returns the one core of OpenVINO in this process: with several (2026.4), it ended at the next signal."""
    import openvino

    return openvino.Core()


class Compiled:
    """A model of OpenVINO, compiled for the processor; a function from inputs to a dictionary of outputs by name.

    It may be called from several threads at once: each call takes a request of its own.
    """

    def __init__(self, model, precision="f32", threads=None):
        settings = {"INFERENCE_PRECISION_HINT": precision, **({"INFERENCE_NUM_THREADS": threads} if threads else {})}
        self.compiled = openvino_core().compile_model(model, "CPU", settings)
        shapes = {each.any_name: each.partial_shape for each in self.compiled.inputs}
        self.shapes = {name: [n.get_length() if n.is_static else None for n in shapes[name]] for name in shapes}
        self.inputs = [*shapes]
        self.names = [output.any_name for output in self.compiled.outputs]
        self.idle = collections.deque()  # requests, of which one computes a single call at a time

    def __call__(self, examples):
        examples = named(examples, self.inputs)
        arrays = [np.ascontiguousarray(examples[name], TYPES[name]) for name in self.inputs]
        for name, array in zip(self.inputs, arrays):
            self._check(name, array.shape)
        try:
            request = self.idle.pop()
        except IndexError:
            request = self.compiled.create_infer_request()
        try:
            outputs = request.infer(arrays)
        finally:
            self.idle.append(request)
        return dict(zip(self.names, outputs.values()))

    def _check(self, name, shape):
        """Raises ValueError for an input of another shape: OpenVINO 2026.4 with one thread does not, and may crash."""
        expected = self.shapes[name]
        if len(shape) != len(expected) or any(own not in (None, size) for own, size in zip(expected, shape)):
            raise ValueError(f"The input {name!r} must be of the shape {tuple(expected)}. Received: {tuple(shape)}")


def openvino_has(capability):
    """Returns whether OpenVINO finds a capability in this processor, such as `"BF16"`."""
    return capability in openvino_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def tflite(path, threads=None):
    """Loads a TFLite file; returns the function from inputs to outputs, and its operators."""
    interpreter = opened(path, threads or cores())
    operators = Counter(op["op_name"] for op in tflite_operators(interpreter) if op["op_name"] != "DELEGATE")
    runner = interpreter.get_signature_runner("serve")
    details = runner.get_input_details()
    types = {name: each["dtype"] for name, each in details.items()}
    batch = next(iter(details.values()))["shape"][0]

    def call(examples):
        stored = {name: np.rint(x) if types[name] == np.uint8 else x for name, x in examples.items()}
        return runner(**{name: x.astype(types[name]) for name, x in stored.items()})

    return lambda examples: _in_batches(call, named(examples, details), batch), dict(operators.most_common())


def size_of(examples):
    """Returns `(height, width)` of the images, or of the clips' frames, among a model's inputs by name, if any."""
    return next((examples[name].shape[-3:-1] for name in ("images", "clips") if name in examples), ())


def _in_batches(call, examples, batch):
    """Returns the outputs of a function that takes `batch` examples at once; any number if it is `None`.

    Args:
        call: Function from a dictionary of inputs to a dictionary of outputs.
        examples: Dictionary of inputs, arrays of equally many examples.
        batch: Number of examples of a call; the last one is filled with zeros.
    """
    count = len(next(iter(examples.values())))
    batch = batch or max(count, 1)
    filled = {name: np.pad(x, [(0, -count % batch)] + [(0, 0)] * (x.ndim - 1)) for name, x in examples.items()}
    parts = [{name: x[i : i + batch] for name, x in filled.items()} for i in range(0, count, batch)]
    return np.concatenate([packed(call(part), size_of(part)) for part in parts])[:count]


def profile(path):
    """Measures the time and memory of a TFLite file on this machine; returns fields of a `Report`."""
    interpreters = {threads: opened(path, threads) for threads in THREADS}
    details = tflite_operators(interpreters[1])
    operators = [op for op in details if op["op_name"] != "DELEGATE"]
    delegates = [op for op in details if op["op_name"] == "DELEGATE"]
    outside = _outside(operators, delegates)
    times = {threads: _milliseconds(interpreter) for threads, interpreter in interpreters.items()}
    alone = _milliseconds(_part(path, outside)) if outside else 0.0
    return {
        "ms": {str(threads): ms for threads, ms in times.items()},
        "partitions": len(delegates),
        "outside": dict(Counter(operators[i]["op_name"] for i in outside).most_common()),
        "outside_time": min(alone / times[1], 1.0),
        "memory_mb": _memory(path),
    }


def median_ms(run, repeats=10):
    """Returns the median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def opened(path, threads):
    """Returns an interpreter of a TFLite file, ready to run."""
    from ai_edge_litert.interpreter import Interpreter

    return _ready(Interpreter(str(path), num_threads=threads))


def _ready(interpreter):
    """Returns an interpreter with its memory; ids are zero, for what is there may be no row of a table."""
    interpreter.allocate_tensors()
    for each in interpreter.get_input_details():
        if each["dtype"] == np.int32:
            interpreter.set_tensor(each["index"], np.zeros(each["shape"], "int32"))
    return interpreter


def _milliseconds(interpreter):
    """Returns the median time of a call, after three calls to warm up."""
    for _ in range(3):
        interpreter.invoke()
    return median_ms(interpreter.invoke)


def _outside(operators, delegates):
    """Returns the indices of operators outside all delegates; inside are those from its inputs to its outputs."""
    makers = {tensor: i for i, op in enumerate(operators) for tensor in op["outputs"]}
    inside = set()
    for delegate in delegates:
        inputs, tensors = set(delegate["inputs"]), list(delegate["outputs"])
        while tensors:
            maker = makers.get(tensors.pop())
            if maker is not None and maker not in inside:
                inside.add(maker)
                tensors += [tensor for tensor in operators[maker]["inputs"] if tensor not in inputs]
    return [i for i in range(len(operators)) if i not in inside]


def _part(path, keep):
    """Returns an interpreter of some of a file's operators alone; the outputs of other operators become its inputs."""
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_litert.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model(str(path))
    graph = model.subgraphs[0]
    graph.operators = [graph.operators[i] for i in keep]
    outputs = {tensor for op in graph.operators for tensor in op.outputs}
    inputs = {int(t) for op in graph.operators for t in op.inputs if t >= 0 and t not in outputs}
    constant = [
        model.buffers[t.buffer].data is not None and len(model.buffers[t.buffer].data) > 0 for t in graph.tensors
    ]
    graph.inputs = np.array(sorted(t for t in inputs if not constant[t]), "int32")
    graph.outputs = np.array(sorted(outputs), "int32")
    model.signatureDefs = []
    with tempfile.TemporaryDirectory() as folder:
        flatbuffer_utils.write_model(model, str(pathlib.Path(folder) / "part.tflite"))
        interpreter = Interpreter(str(pathlib.Path(folder) / "part.tflite"), num_threads=1)
    return _ready(interpreter)


def _memory(path):
    """Returns the megabytes that loading a TFLite file and running it once takes in a process; `None` off Linux."""
    process = subprocess.run([sys.executable, "-c", _MEMORY, str(path)], capture_output=True, text=True)
    return float(process.stdout) if process.returncode == 0 else None
