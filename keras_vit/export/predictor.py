"""Predictors: a model on OpenVINO, or on Keras where that is not to be had, for people who stay in Python."""

import threading

import keras
import numpy as np

from keras_vit.export import check, openvino, runtimes
from keras_vit.export.forms import copied, export_copy, float32
from keras_vit.models.kinds import kind_of
from keras_vit.utils import checks, extras
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.warned import warn

ENGINES = (None, "openvino", "keras")
DTYPES = {"float32": ("f32", "float32"), "bfloat16": ("bf16", "mixed_bfloat16")}  # OpenVINO's word, Keras's policy
LARGEST = {"float32": 1e-3, "bfloat16": 0.2}  # difference from the model allowed, as a share of the outputs' range
COPIED = 0.1  # as a share of the range too: of a copy in the model's own precision, whose LoRA is merged
TRIED = 2  # images that a predictor is compared with the model on


class Predictor:
    """Predicts with the weights that a model had when `predictor` was called; may be used by several threads at once.

    Args:
        compute: Function from a batch of pixels, one image or more, to a list of arrays, the model's outputs.
        model: The model that it computes.
        engine: `"openvino"` or `"keras"`.
        dtype: `"float32"` or `"bfloat16"`: what it computes in.

    Attributes:
        engine: As above.
        dtype: As above.
        input_shape: `(None, height, width, channels)` of the pixels.
    """

    def __init__(self, compute, model, engine, dtype):
        self.engine = engine
        self.dtype = dtype
        self.input_shape = model.inputs[0].shape
        self._compute = compute
        self._dtypes = keras.tree.map_structure(
            lambda output: output.dtype, model.outputs[0] if isinstance(model, keras.Sequential) else model.output
        )
        self._shapes = [output.shape[1:] for output in model.outputs]

    def __repr__(self):
        return f"Predictor(engine={self.engine!r}, dtype={self.dtype!r}, input_shape={self.input_shape})"

    def __call__(self, images):
        """Returns the outputs for one batch of pixels, as `model.predict_on_batch` does; arguments as in `predict`."""
        images = self._checked(images)
        return self._joined([self._compute(images)] if len(images) else [])

    def predict(self, images, batch_size=32):
        """Returns the outputs for any number of images, as `model.predict` does.

        Args:
            images: Pixels, `(images, height, width, channels)`, integers or floats in the model's range; may be empty.
            batch_size: Number of images computed at once, at least 1.

        Returns:
            NumPy arrays, in the structure, of the shapes and of the types that the model returns.

        Raises:
            ValueError: For images of another shape, or that are no numbers.
        """
        checks.positive(batch_size=batch_size)
        images = self._checked(images)
        return self._joined([self._compute(images[i : i + batch_size]) for i in range(0, len(images), batch_size)])

    def _checked(self, images):
        wanted = self.input_shape[1:]
        try:
            images = np.asarray(images)
        except ValueError:  # lists of several lengths
            images = np.asarray(None)
        if images.ndim != 4 or images.shape[1:] != wanted or images.dtype.kind not in "biuf":
            raise ValueError(
                f"`images` must be numbers of shape (images, {', '.join(map(str, wanted))}). "
                f"Received: shape {images.shape}, dtype {images.dtype}"
            )
        return images

    def _joined(self, batches):
        """Returns the outputs of batches as one, in the model's structure and types."""
        arrays = [np.concatenate(parts) for parts in zip(*batches)] or [np.zeros((0, *s)) for s in self._shapes]
        typed = [array.astype(dtype) for array, dtype in zip(arrays, keras.tree.flatten(self._dtypes))]
        return keras.tree.pack_sequence_as(self._dtypes, typed)


def predictor(
    model: keras.Model, engine: str | None = None, dtype: str = "float32", threads: int | None = None
) -> Predictor:
    """Returns a predictor of a model by OpenVINO, for processors of Intel and AMD.

    This needs the extra `openvino`, Keras on TensorFlow, and a model that OpenVINO can compute; else Keras predicts,
    and a warning says why. In float32 it depends on the model and the processor which is faster: see the page on speed.
    To build a predictor takes a few seconds. It is compared with the model on two random images before it is returned.
    It has the weights of this moment: after more training, build another. It writes no file.

    Args:
        model: A Keras model from images of a known size, for any task, under any precision policy.
        engine: `"openvino"`, which is an error where it cannot be used; `"keras"`; if `None`, OpenVINO where it can be
            used.
        dtype: What it computes in: `"float32"`; or `"bfloat16"`, which is faster, and whose outputs differ in the third
            digit.
        threads: Threads for one call of OpenVINO; all cores if `None`.

    Returns:
        A `Predictor`: call it with one batch of pixels, or its `predict(images, batch_size)` with any number.

    Raises:
        ValueError: For an unknown engine or type, `threads` with `engine="keras"`, a model of other inputs,
            outputs that are not one an image, a model that Keras cannot clone in another precision than its own, or
            bfloat16 on a processor that does not have it.
        ImportError: For `engine="openvino"` where OpenVINO is not installed.
        RuntimeError: For `engine="openvino"` where it cannot compute the model, or where outputs differ; on Keras's
            own OpenVINO backend, which chooses the precision itself.

    Example:

    >>> fast = keras_vit.predictor(keras_vit.from_pretrained("mnist"))
    >>> logits = fast.predict(images, batch_size=64)
    """
    checks.one_of("engine", engine, ENGINES)
    checks.one_of("dtype", dtype, DTYPES)
    if threads is not None:
        checks.positive(threads=threads)
    if threads is not None and engine == "keras":
        raise ValueError(f"`threads` is for OpenVINO: TensorFlow's are global. Received: threads={threads}")
    _check_model(model)
    if keras.backend.backend() == "openvino":
        raise RuntimeError(
            "Keras's OpenVINO backend chooses the precision itself: call `model.predict`, or load the model with "
            "KERAS_BACKEND=tensorflow. Received: backend 'openvino'"
        )
    if engine == "keras":
        return _tested(_of_keras(model, dtype), model, engine, dtype)
    try:
        return _tested(_of_openvino(model, dtype, threads), model, "openvino", dtype)
    except (ImportError, RuntimeError) as error:
        if engine:
            raise
        reason = str(error).removesuffix(".")
    warn(f"Predicting with Keras{' and without `threads`' if threads else ''}: {reason}.")
    return _tested(_of_keras(model, dtype), model, "keras", dtype)


def _check_model(model):
    """Raises ValueError unless a model takes one batch of images of a known size, and returns outputs for each."""
    given = [tuple(each.shape) for each in getattr(model, "inputs", None) or ()]
    if not isinstance(model, keras.Model) or len(given) != 1 or len(given[0]) != 4 or None in given[0][1:]:
        name = model.name if isinstance(model, keras.Model) else type(model).__name__
        raise ValueError(
            "`model` must be a Keras model of images of a known size. Wrap one without, such as a subclass: "
            f"keras.Model(x, model(x)) with x = keras.Input(...). Received: {name!r}, inputs {given}"
        )
    returned = [tuple(each.shape) for each in model.outputs]
    if any(shape[:1] != given[0][:1] for shape in returned):
        raise ValueError(f"`model` must return outputs for each image. Received: {model.name!r}, outputs {returned}")


def _of_openvino(model, dtype, threads):
    """Returns the function from pixels to outputs by OpenVINO; ImportError or RuntimeError if there is none."""
    extras.need("The engine OpenVINO", "openvino", "openvino")
    if dtype == "bfloat16" and not runtimes.openvino_has("BF16"):
        raise ValueError(f"This processor has no instructions for bfloat16. Received: dtype={dtype!r}")
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "A model is converted for OpenVINO by TensorFlow: save it as .keras, and load it with "
            f"KERAS_BACKEND=tensorflow. Received: backend {keras.backend.backend()!r}"
        )
    try:
        copy = export_copy(model)
        flat = lambda pixels: keras.tree.flatten(copy(pixels, training=False))  # noqa: E731
        converted = openvino.converted(
            lambda pixels: {f"output_{i}": output for i, output in enumerate(flat(pixels))}, model.inputs[0].shape[1:]
        )
        compiled = runtimes.Compiled(converted, DTYPES[dtype][0], threads)
        if len(set(compiled.names)) != len(model.outputs):
            raise RuntimeError("it returns one tensor as two outputs")
    except Exception as error:  # OpenVINO's own classes are not public
        raise RuntimeError(f"OpenVINO cannot compute {model.name!r}: {_said(error)}") from error

    def compute(images):
        outputs = compiled(images)
        return [outputs[f"output_{i}"] for i in range(len(outputs))]

    return compute


def _said(error):
    """Returns the last line of an error, which in OpenVINO's says most; its class if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def _of_keras(model, dtype):
    """Returns the function from pixels to outputs by Keras; one thread at a time."""
    try:
        copy = copied(model, DTYPES[dtype][1])
    except ValueError:
        copy = model
    if copy is model:
        return _of_values(model, dtype)
    lock = threading.Lock()

    def compute(images):
        with lock:
            return [np.asarray(x) for x in keras.tree.flatten(copy.predict_on_batch(images))]

    return compute


def _of_values(model, dtype):
    """Returns the function by the layers of a model that Keras cannot clone, and copies of its weights."""
    if dtype != "float32" or not _in_float32(model):
        computed = sorted({layer.compute_dtype for layer in sublayers(model)})
        raise ValueError(
            f"Keras cannot clone {model.name!r}, so it is computed in {', '.join(computed)} only: give each of its "
            f"layers a whole `get_config`. Received: dtype={dtype!r}"
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


def _in_float32(model):
    """Returns whether a model computes in float32, as quantized ones do between their products of integers."""
    return {layer.compute_dtype for layer in sublayers(model)} == {"float32"}


def _tested(compute, model, engine, dtype):
    """Returns a `Predictor`; RuntimeError if its outputs for random images are not the model's."""
    images, plain = check.drawn(model, TRIED), model
    if not _in_float32(model):
        plain, twin = float32(model), copied(model, None)  # a twin computes what the model does, if its config is whole
        _compare(
            _flat(twin, images), _flat(model, images), model, "on a copy by its layers' `get_config`", COPIED, True
        )
    where = f"on {engine} in {dtype}"
    _compare(compute(images), _flat(plain, images), model, where, LARGEST[dtype], dtype == "bfloat16")
    return Predictor(compute, model, engine, dtype)


def _flat(model, images):
    return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(model(images, training=False))]


def _compare(found, expected, model, where, allowed, coarse):
    """Raises RuntimeError if outputs differ from the model's by more than a share of their range, or of their size."""
    kind = kind_of(model) if len(expected) == 1 else None
    for outputs, wanted in zip(found, expected, strict=True):
        outputs, wanted = np.asarray(outputs, "float32"), np.asarray(wanted, "float32")
        outputs, wanted = kind.aligned(outputs, wanted) if kind else (outputs, wanted)
        largest, sizes = float(np.abs(outputs - wanted).max()), float(np.abs(wanted).max())
        scale = max(float(np.ptp(wanted)), sizes if coarse else sizes / 100, 1e-3)
        if not largest <= allowed * scale:  # written so that NaN fails too
            raise RuntimeError(
                f"The outputs of {model.name!r} {where} differ from the model's by up to {largest:.3g}, "
                f"of a range of {scale:.3g}"
            )
