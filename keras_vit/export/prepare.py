"""What every export does before and around its own work."""

import contextlib
import importlib.util
import pathlib
import tempfile

import keras

from keras_vit import checks, files
from keras_vit.preprocessing import stated_labels, stated_rule

EXTRAS = {"quantize": ["ai_edge_quantizer"], "onnx": ["tf2onnx", "onnx", "onnxruntime"]}
LIMIT = 2**31 - 2**20  # bytes of a flatbuffer or a protocol buffer, less what is not weights


def need_tensorflow_backend(what):
    """Raises unless Keras runs on TensorFlow, which does the conversion."""
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            f"{what} is written by TensorFlow: save the model as .keras, and load and export it where "
            f"KERAS_BACKEND=tensorflow. Received: backend {keras.backend.backend()!r}"
        )


def check_model(model, limit=LIMIT):
    """Raises ValueError unless it is a model from one tensor of images to one of logits, of less than 2 GB."""
    if not isinstance(model, keras.Model):
        raise ValueError(f"A Keras model is exported. Received: {type(model).__name__}")
    try:
        given, gives = model.input_shape, model.output_shape
    except (AttributeError, ValueError):
        given = gives = None
    if not (isinstance(given, tuple) and len(given) == 4 and None not in given[1:]):
        raise ValueError(
            "A model of images of a known size is exported; one without, such as a subclass, is wrapped: "
            f"keras.Model(x, model(x)) with x = keras.Input(...). Received: {model.name!r}, input shape {given}"
        )
    if not (isinstance(gives, tuple) and len(gives) == 2):
        raise ValueError(f"A model of one vector of logits is exported. Received: {model.name!r}, output shape {gives}")
    size = 4 * model.count_params()
    if size > limit:
        raise ValueError(f"A file of this format holds less than 2 GB. Received: {model.name!r}, {size / 1e9:.1f} GB")


def check_labels(model, labels):
    """Raises ValueError unless there are as many names as the model has classes."""
    named = hasattr(labels, "__len__") and not isinstance(labels, str)
    if labels is not None and (not named or len(labels) != model.output_shape[-1]):
        raise ValueError(
            f"`labels` are the names of the {model.output_shape[-1]} classes. Received: "
            f"{len(labels) if named else repr(labels)}"
        )


def facts(model, labels):
    """Returns what a user of an exported file has to know, for JSON. Labels are those that travel with the model."""
    labels = stated_labels(model) if labels is None else labels
    return {
        "model": model.name,
        "input": {
            "shape": [None, *model.input_shape[1:]],
            "range": [0, 255],
            "channels": {1: "grey", 3: "RGB"}.get(model.input_shape[-1]),
        },
        "preprocessing": stated_rule(model),
        "labels": None if labels is None else [str(label) for label in labels],
    }


def need(quantize=(), onnx=False):
    """Raises ImportError if the converter of a format is not installed."""
    asked = {"quantize": "int8" in quantize, "onnx": onnx}
    for extra, modules in EXTRAS.items():
        missing = [name for name in modules if asked[extra] and importlib.util.find_spec(name) is None]
        if missing:
            packages = " ".join(name.replace("_", "-") for name in missing)
            raise ImportError(f"This format needs {', '.join(missing)}: pip install {packages}.")


def check_free(path, overwrite):
    """Raises FileExistsError if there is something at a path that is not to be overwritten."""
    if checks.path("path", path).exists() and not overwrite:
        raise FileExistsError(f"{str(path)!r} exists. Choose another path, or pass overwrite=True.")


@contextlib.contextmanager
def destination(path, overwrite):
    """Yields a temporary path; what stands there at the end moves to `path`, and after an error nothing does.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false, or it is a folder and no SavedModel.
        OSError: If its folder cannot be made or written to.
    """
    path = pathlib.Path(path)
    check_free(path, overwrite)
    if path.is_dir() and not (path / "saved_model.pb").exists():
        raise FileExistsError(f"{str(path)!r} is a folder and no SavedModel: it is not overwritten.")
    path.parent.mkdir(parents=True, exist_ok=True)
    files.sweep(path.parent)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=files.UNFINISHED) as folder:
        temporary = pathlib.Path(folder) / path.name
        yield temporary
        old = pathlib.Path(folder) / "old"
        if path.exists():
            path.rename(old)
        try:
            temporary.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
