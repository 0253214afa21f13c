"""Predictors: a model on the engine that is fastest for it on this machine, for people who stay in Python."""

import functools

import keras
import numpy as np

from keras_vit.export import comparison
from keras_vit.export.engines import BY, DTYPES, in_float32, milliseconds
from keras_vit.export.examples import drawn
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

ENGINES = (None, *BY)
FEW = 8  # images of a batch, up to which TFLite is tried: it computes one after the other
LARGEST = {"float32": 1e-3, "bfloat16": 0.2}  # difference from the model allowed, as a share of the outputs' range
TRIED = 2  # images that a predictor is compared with the model on
THREADS = 1024  # at most


class Predictor:
    """Predicts with the weights that a model had when `predictor` was called; may be used by several threads at once.

    Args:
        compute: Function from a batch of pixels, one image or more, to a list of arrays, the model's outputs.
        model: The model that it computes.
        engine: `"openvino"`, `"tflite"` or `"keras"`.
        dtype: `"float32"` or `"bfloat16"`: what it computes in.
        batch_size: Number of images in a usual call.
        milliseconds: Of a batch, by engine, where engines were compared.

    Attributes:
        engine: As above.
        dtype: As above.
        batch_size: As above.
        milliseconds: As above; empty where there was one engine.
        input_shape: `(None, height, width, channels)` of the pixels.
    """

    def __init__(self, compute, model, engine, dtype, batch_size, milliseconds):
        self.engine = engine
        self.dtype = dtype
        self.batch_size = batch_size
        self.milliseconds = milliseconds
        self.input_shape = model.inputs[0].shape
        self._compute = compute
        self._dtypes = keras.tree.map_structure(
            lambda output: output.dtype, model.outputs[0] if isinstance(model, keras.Sequential) else model.output
        )
        self._shapes = [output.shape[1:] for output in model.outputs]

    def __repr__(self):
        times = "".join(f", {name} {ms:.3g} ms" for name, ms in self.milliseconds.items())
        return (
            f"Predictor(engine={self.engine!r}, dtype={self.dtype!r}, input_shape={self.input_shape}, "
            f"batch_size={self.batch_size}{times})"
        )

    def __call__(self, images):
        """Returns the outputs for one batch of pixels, as `model.predict_on_batch` does; arguments as in `predict`."""
        images = self._checked(images)
        return self._joined([self._compute(images)] if len(images) else [])

    def predict(self, images, batch_size=None):
        """Returns the outputs for any number of images, as `model.predict` does.

        Args:
            images: Pixels, `(images, height, width, channels)`, integers or floats in the model's range; may be empty.
            batch_size: Number of images computed at once, at least 1; the predictor's own, which is fastest, if `None`.

        Returns:
            NumPy arrays, in the structure, of the shapes and of the types that the model returns.

        Raises:
            ValueError: For images of another shape, or that are no numbers.
        """
        size = self.batch_size if batch_size is None else batch_size
        checks.positive(batch_size=size)
        images = self._checked(images)
        return self._joined([self._batch(images[i : i + size]) for i in range(0, len(images), size)])

    def _batch(self, images):
        """Returns the outputs of one batch of many: the last one, with fewer images, is padded to be as fast."""
        count, size = len(images), self.batch_size
        if not size // 2 < count < size:
            return self._compute(images)
        filled = np.concatenate([images, np.repeat(images[-1:], size - count, axis=0)])
        return [output[:count] for output in self._compute(filled)]

    def _checked(self, images):
        shape = self.input_shape[1:]
        try:
            images = np.asarray(images)
        except ValueError:  # lists of several lengths
            images = np.asarray(None)
        if images.ndim != 4 or images.shape[1:] != shape or images.dtype.kind not in "biuf":
            raise ValueError(
                f"`images` must be numbers of shape (images, {', '.join(map(str, shape))}). "
                f"Received: shape {images.shape}, dtype {images.dtype}"
            )
        return images

    def _joined(self, batches):
        """Returns the outputs of batches as one, in the model's structure and types."""
        arrays = [np.concatenate(parts) for parts in zip(*batches)] or [np.zeros((0, *s)) for s in self._shapes]
        typed = [array.astype(dtype) for array, dtype in zip(arrays, keras.tree.flatten(self._dtypes))]
        return keras.tree.pack_sequence_as(self._dtypes, typed)


def predictor(
    model: keras.Model,
    engine: str | None = None,
    dtype: str = "float32",
    threads: int | None = None,
    batch_size: int = 32,
) -> Predictor:
    """Returns a predictor of a model by the engine that takes least time: OpenVINO, TFLite, or Keras under XLA.

    OpenVINO is for processors of Intel and AMD, and needs the extra `openvino`. It and TFLite need Keras on TensorFlow,
    and a model that they can compute. Which engine is faster depends on the model, the processor and the number of
    images, so they are timed on one batch of `batch_size` random images; TFLite, which computes one image after the
    other, on batches of up to 8 in float32. A warning says why if OpenVINO cannot be tried.

    To build a predictor takes seconds, and up to a minute for B/16: `engine=` and a smaller batch make that shorter. It
    is compared with the model on two random images before it is returned. It has the weights of this moment: after more
    training, build another. It keeps no file.

    Args:
        model: A Keras model from images of a known size, for any task, under any precision policy.
        engine: `"openvino"`, `"tflite"` or `"keras"`, an error where it cannot be used; the fastest if `None`.
        dtype: What it computes in: `"float32"`; or `"bfloat16"`, which is faster where the processor has it, and whose
            outputs differ in the third digit.
        threads: Threads for one call of OpenVINO or TFLite, at most 1,024; all cores if `None`. OpenVINO is then taken
            without a comparison, since Keras's threads are global.
        batch_size: Number of images in a usual call, for which the engines are timed and XLA compiles. Other numbers
            are computed too.

    Returns:
        A `Predictor`: call it with one batch of pixels, or its `predict(images)` with any number.

    Raises:
        ValueError: For an unknown engine or type, `threads` with `engine="keras"`, a model of other inputs,
            outputs that are not one an image, a model that Keras cannot clone in another precision than its own, or
            bfloat16 by TFLite or on a processor that does not have it.
        ImportError: For `engine="openvino"` where OpenVINO is not installed.
        RuntimeError: For an engine that cannot compute the model, or whose outputs differ; on Keras's own OpenVINO
            backend, which chooses the precision itself.

    Example:

    >>> fast = keras_vit.predictor(keras_vit.from_pretrained("mnist"), batch_size=64)
    >>> logits = fast.predict(images)
    """
    built, reason = choose(model, engine, dtype, threads, batch_size)
    if reason:
        without = " and without `threads`" if threads and built.engine == "keras" else ""
        warn(f"Predicting by {built.engine}{without}, without OpenVINO: {reason}.")
    return built


def choose(model, engine=None, dtype="float32", threads=None, batch_size=32):
    """Returns the `Predictor` of `predictor`, and why OpenVINO could not be tried, or `None`; arguments as there."""
    checks.one_of("engine", engine, ENGINES)
    checks.one_of("dtype", dtype, DTYPES)
    checks.positive(batch_size=batch_size)
    if threads is not None:
        checks.positive(threads=threads)
        if engine == "keras" or threads > THREADS:
            raise ValueError(
                f"`threads` is for OpenVINO and TFLite, and at most {THREADS:,}: those of TensorFlow are global. "
                f"Received: threads={threads}, engine={checks.shown(engine)}"
            )
    _check_model(model)
    if keras.backend.backend() == "openvino":
        raise RuntimeError(
            "Keras's OpenVINO backend chooses the precision itself: call `model.predict`, or load the model with "
            "KERAS_BACKEND=tensorflow. Received: backend 'openvino'"
        )
    about = Traits(model)
    tried = drawn(about, TRIED)
    batch = np.resize(tried, (batch_size, *tried.shape[1:]))
    expected = functools.cache(lambda: _expected(about, tried))  # once for all engines, after the first is built
    functions, errors = {}, {}
    for name in [engine] if engine else _candidates(dtype, batch_size):
        if threads and functions:
            break
        try:
            function = BY[name](model, dtype, batch_size, threads)
            for images in (tried, batch):
                _check(function(images), expected(), about, name, dtype)
        except (ImportError, RuntimeError) as error:
            errors[name] = error
        else:
            functions[name] = function
    if not functions:
        raise next(reversed(errors.values()))
    times = milliseconds(functions, batch) if len(functions) > 1 else {}
    best = min(times, key=times.get) if times else next(iter(functions))
    reason = str(errors["openvino"]).removesuffix(".") if "openvino" in errors else None
    return Predictor(functions[best], model, best, dtype, batch_size, times), reason


def _candidates(dtype, batch_size):
    """Returns the engines to compare."""
    if dtype == "float32" and batch_size <= FEW:
        return ["openvino", "tflite", "keras"]
    return ["openvino", "keras"]


def _check_model(model):
    """Raises ValueError unless a model takes one batch of images of a known size, and returns outputs for each."""
    shapes = [tuple(each.shape) for each in getattr(model, "inputs", None) or ()]
    if not isinstance(model, keras.Model) or len(shapes) != 1 or len(shapes[0]) != 4 or None in shapes[0][1:]:
        name = model.name if isinstance(model, keras.Model) else type(model).__name__
        raise ValueError(
            "`model` must be a Keras model of images of a known size. Wrap one without, such as a subclass: "
            f"keras.Model(x, model(x)) with x = keras.Input(...). Received: {name!r}, inputs {shapes}"
        )
    returned = [tuple(each.shape) for each in model.outputs]
    if any(shape[:1] != shapes[0][:1] for shape in returned):
        raise ValueError(f"`model` must return outputs for each image. Received: {model.name!r}, outputs {returned}")


def _expected(about, images):
    """Returns a model's outputs in float32; RuntimeError if its copy there computes something else."""
    plain = about.model if in_float32(about.model) else comparison.float32_of(about, images)
    return comparison.flat_outputs(plain, images)


def _check(outputs, expected, about, engine, dtype):
    """Raises RuntimeError if the outputs for images, or for a batch that repeats them, are not those expected."""
    references = [
        np.resize(each, (len(output), *each.shape[1:])) for output, each in zip(outputs, expected, strict=True)
    ]
    comparison.close(outputs, references, about, f"on {engine} in {dtype}", LARGEST[dtype], dtype == "bfloat16")
