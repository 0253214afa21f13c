"""Checks before an export, and the temporary path that it writes to."""

import importlib.util

import keras
import numpy as np

from keras_vit.layers import TimeEmbedding
from keras_vit.models.autoencoder import AUTOENCODER, takes_latents
from keras_vit.models.backbone import check_plain
from keras_vit.models.dit import EMPTY, classes_of, reads_texts, words_of
from keras_vit.models.inputs import CLIPS, metadata_of
from keras_vit.models.kinds import NAMELESS
from keras_vit.models.metadata import metadata
from keras_vit.models.outputs import check_known
from keras_vit.models.schedules import SCHEDULE, SHIFT
from keras_vit.models.unknown import NEIGHBOURS
from keras_vit.preparing.clip_preparation import frames_rule
from keras_vit.utils import extras, files
from keras_vit.utils.bands import KEPT
from keras_vit.utils.weights_digest import WEIGHTS, weights_digest

CONVERTERS = {  # of formats: the extra, and the modules to import
    "int8": ("quantize", ["ai_edge_quantizer"]),
    "onnx": ("onnx", ["tf2onnx", "onnx", "onnxruntime"]),
    "openvino": ("openvino", ["openvino"]),
    "openvino int8": ("openvino", ["openvino", "nncf"]),
}
FREQUENT = 1000.0  # of a time embedding: the scaled time at its end
LIMIT = 2**31 - 2**20  # bytes of weights in a flatbuffer or a protocol buffer, which end at 2 GB


def need_tensorflow_backend(what):
    """Raises RuntimeError unless Keras runs on TensorFlow, which does the conversion."""
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            f"{what} is written by TensorFlow: save the model as .keras, then load and export it with "
            f"KERAS_BACKEND=tensorflow. Received: backend {keras.backend.backend()!r}"
        )


def check_model(about, limit=LIMIT):
    """Raises ValueError unless a model takes what files can, returns one tensor, and has less than 2 GB.

    Args:
        about: The model's `Traits`.
        limit: Bytes of weights, at most.
    """
    model = about.model
    if not isinstance(model, keras.Model):
        raise ValueError(f"`model` must be a Keras model. Received: {type(model).__name__}")
    try:
        inputs, outputs = model.input_shape, model.output_shape
    except (AttributeError, ValueError):
        inputs = outputs = None
    if not about.inputs:
        raise ValueError(
            "The model must take images of a known size, integer ids of texts, or a dictionary of both, `images` and "
            "`texts`. Wrap a model without a size, such as a subclass: keras.Model(x, model(x)) with "
            "x = keras.Input(...). For a captioner, see export_writer. "
            f"Received: {model.name!r}, input shape {inputs}"
        )
    if not about.pairs:
        raise ValueError(
            "Two towers that give logits of all images with all texts have no one batch. Export each tower, "
            'model.get_layer("image") and model.get_layer("text"), or take two_towers(..., pairs=True). '
            f"Received: {model.name!r}, pairs=False"
        )
    if not (isinstance(outputs, tuple) and len(outputs) > 1 and None not in outputs[1:]):
        raise ValueError(
            "The model must return one tensor of known size, such as a vector of logits. "
            f"Received: {model.name!r}, output shape {outputs}"
        )
    check_plain(model, "Export (see its argument `quantize`)")
    check_size(model, limit)


def check_size(model, limit=LIMIT):
    """Raises ValueError if a model has too many weights for a format, in float32."""
    size = 4 * model.count_params()
    if size > limit:
        raise ValueError(
            f"The model must have less than 2 GB in this format. Received: {model.name!r}, {size / 1e9:.1f} GB"
        )


def check_labels(about, labels):
    """Raises ValueError unless `labels` is `None` or has one name per class."""
    named = hasattr(labels, "__len__") and not isinstance(labels, str)
    if labels is not None and (not named or len(labels) != about.classes):
        raise ValueError(
            f"`labels` must be a list of {about.classes} class names. Received: "
            f"{len(labels) if named else repr(labels)}"
        )
    if about.unknown is not None:
        check_known(labels or about.labels or ())


def check_probabilities(about):
    """Raises ValueError for a model without logits, or with one, of which probabilities are asked for."""
    received = f"Received: probabilities=True with {about.model.name!r}"
    if why := about.kind.bounded:
        raise ValueError(f"{why} {received}")
    if about.shares:
        raise ValueError(f"The model returns probabilities already. {received}")
    if about.model.output_shape[-1] == 1 and about.kind.probabilities is keras.ops.softmax:
        raise ValueError(f"A softmax of one logit is always 1: apply a sigmoid to it. {received}")


def named_outputs(about, output, probabilities):
    """Returns a file's outputs by name, from the model's: see `models.kinds`. `runtimes.packed` is its inverse."""
    output = about.kind.probabilities(output) if probabilities else output
    return about.kind.named(output, about.size, probabilities or about.shares)


def facts(about, labels, probabilities=False):
    """Returns the facts that a user of an exported file needs, for JSON. Labels default to the model's metadata.

    A rule by energy is left out of a file that gives probabilities: they have lost the energy.
    """
    rule = about.unknown
    applies = rule is not None and (rule["rule"] == NEIGHBOURS or not probabilities)
    labels = about.labels if labels is None and about.gives not in NAMELESS else labels
    shapes = about.inputs
    pixels = next((shapes[name] for name in ("images", "clips") if name in shapes), None)
    return {
        "model": about.model.name,
        **({} if pixels is None else _of_images(about, pixels)),
        **({"texts": _of_texts(about, shapes["texts"])} if "texts" in shapes else {}),
        **(_of_noise(about.model) if "times" in shapes else {}),
        **({"preprocessing": None} if takes_latents(about.model) else {}),
        "labels": None if labels is None else [str(label) for label in labels],
        **({} if about.thresholds is None else {"thresholds": about.thresholds}),
        **({"tiles": stated["tiles"]} if "tiles" in (stated := metadata(about.model)) else {}),
        **({"unknown": rule} if applies else {}),
        **getattr(about.model.layers[-1], "export_facts", lambda output_shape: {})(about.model.output_shape),
        WEIGHTS: weights_digest(about.model),
    }


def _of_images(about, shape):
    entry = {
        "shape": [None, *shape],
        "range": None if about.range is None else np.transpose(about.range).tolist(),  # of bands a pair for each
        "channels": {1: "gray", 3: "RGB"}.get(shape[-1]),
    }
    if kept := metadata(about.model).get(KEPT):
        entry |= {"channels": None, "bands": kept}
    frames = {"frames": frames_rule(about.model)} if len(shape) == CLIPS - 1 else {}
    return {"input": entry, "preprocessing": about.rule, **frames}


def _of_noise(model):
    """Returns what noisy images are: nothing to be resized; times, and the label of no class, or the ids of no text."""
    longest = FREQUENT / next(layer for layer in model.layers if isinstance(layer, TimeEmbedding)).scale
    none = {"no_class": classes_of(model)}
    if reads_texts(model):
        ids = words_of(model).metadata.get(EMPTY)
        none = {"no_text": None if ids is None else [*ids]}
    known = {key: metadata_of(model)[key] for key in (SCHEDULE, SHIFT, AUTOENCODER) if key in metadata_of(model)}
    return {"preprocessing": None, "sampling": {"times": [0, longest], **none, **known}}


def _of_texts(about, shape):
    """Returns what makes ids of texts: the table of words, or the tokenizer's name, in the model's metadata."""
    table, rows = about.words
    metadata = getattr(table, "metadata", {})
    return {
        "shape": [None, *shape],
        "rows": rows,
        **{key: metadata[key] for key in ("words", "tokens") if key in metadata},
    }


def need(quantize=(), onnx=False, openvino=False):
    """Raises ImportError, with all extras to install, unless the converters of these formats are installed."""
    choices = [*quantize, *["onnx"] * onnx, *["openvino"] * openvino]
    formats = [name for name in choices if name in CONVERTERS]
    missing = {name: [m for m in CONVERTERS[name][1] if importlib.util.find_spec(m) is None] for name in formats}
    choices = [name for name in formats if missing[name]]
    if choices:
        each = "; ".join(f"{name!r} needs {', '.join(missing[name])}" for name in choices)
        raise ImportError(f"{each}. {extras.install(*(CONVERTERS[name][0] for name in choices))} Nothing was written.")


def parts(path):
    """Returns the paths of an exported file and of what its format has next to it."""
    return [path, *(path.with_suffix(ending) for ending in files.BESIDE.get(path.suffix, ()))]


def check_parts_free(path, overwrite, folder):
    """Checks that a file, or a folder, and what is written next to a file can be written: see `check_free`."""
    described = [] if folder else [path.with_name(f"{path.name}.json")]
    for each in (*parts(path), *described):
        files.check_free(each, overwrite)
