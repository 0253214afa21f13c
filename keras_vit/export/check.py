"""Runs an exported model in its own runtime and compares it with the Keras model."""

import dataclasses
import os
import pathlib
import time
from collections import Counter

import keras
import numpy as np

from keras_vit import checks

TOLERANCE = 1e-3  # of the range of the logits


@dataclasses.dataclass(frozen=True)
class Report:
    """What an export came to."""

    path: str
    bytes: int
    operators: dict[str, int]
    max_abs_diff: float  # of logits, from the Keras model's
    agreement: float  # share of images with the same top-1 class
    ms: float  # median time of one image

    def __str__(self):
        kinds = [f"{name} {count}" for name, count in self.operators.items()]
        most = ", ".join(kinds[:8] + [f"and {len(kinds) - 8} more kinds"] * (len(kinds) > 8))
        return (
            f"{self.path}: {self.bytes / 1e6:.2f} MB, {self.ms:.2f} ms an image; largest difference from Keras "
            f"{self.max_abs_diff:.1e}, same top-1 class {self.agreement:.1%}\n"
            f"  {sum(self.operators.values())} operators: {most}"
        )


def sample(model, images):
    """Returns the caller's images, or eight of random pixels."""
    if images is not None:
        return checks.pixels(images, model.input_shape[1:]).astype("float32")
    return np.random.default_rng(0).integers(0, 256, (8, *model.input_shape[1:])).astype("float32")


def report(path, model, images, run, operators):
    """Compares `run(images)` with the Keras model.

    Args:
        path: The exported file or folder.
        model: The Keras model.
        images: float32 pixels.
        run: Function from images to logits, in the artifact's own runtime.
        operators: Dictionary from operator names to counts.

    Returns:
        A `Report`.

    Raises:
        RuntimeError: If an operator is not built in, or the logits differ by more than `TOLERANCE`.
    """
    flex = [name for name in operators if name.startswith("Flex")]
    if flex:
        raise RuntimeError(f"{str(path)!r} needs operators outside the runtime's own: {', '.join(flex)}.")
    expected, found = keras.ops.convert_to_numpy(model(images, training=False)), run(images)
    span = float(expected.max() - expected.min())
    difference = float(np.abs(expected - found).max())
    if not difference <= TOLERANCE * max(span, 1e-3):  # written so that NaN fails too
        raise RuntimeError(
            f"{str(path)!r} gives other logits than the model: largest difference {difference:.3g} of a range of "
            f"{span:.3g}. Nothing was kept."
        )
    times = []
    for _ in range(10):
        start = time.perf_counter()
        run(images[:1])
        times.append(1e3 * (time.perf_counter() - start))
    return Report(
        path=str(path),
        bytes=sum(file.stat().st_size for file in [path, *pathlib.Path(path).rglob("*")] if file.is_file()),
        operators=operators,
        max_abs_diff=difference,
        agreement=float((expected.argmax(-1) == found.argmax(-1)).mean()),
        ms=float(np.median(times)),
    )


def saved_model(path):
    """Loads a SavedModel; returns the function from images to logits, and its operators."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))
    serve = loaded.signatures["serving_default"]
    functions = [serve.graph.as_graph_def().node, *(f.node_def for f in serve.graph.as_graph_def().library.function)]

    def run(images, keep=loaded):  # the signature alone does not keep its variables alive
        return next(iter(serve(tf.constant(images, "float32")).values())).numpy()

    return run, dict(Counter(node.op for nodes in functions for node in nodes).most_common())


def tflite(path):
    """Loads a TFLite file; returns the function from images to logits, and its operators."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=os.cpu_count())
    operators = Counter(op["op_name"] for op in interpreter._get_ops_details())
    operators.pop("DELEGATE", None)
    runner = interpreter.get_signature_runner("serve")
    batch = runner.get_input_details()["images"]["shape"][0]

    def run(images):
        padding = np.zeros((-len(images) % batch, *images.shape[1:]))
        padded = np.concatenate([images, padding]).astype("float32")
        parts = [runner(images=padded[i : i + batch])["logits"] for i in range(0, len(images), batch)]
        return np.concatenate(parts)[: len(images)]

    return run, dict(operators.most_common())
