"""Checks before an export, and the temporary path that it writes to."""

import importlib.util

import keras

from keras_vit.layers import TimeEmbedding
from keras_vit.models.backbone import TOWERS, check_plain, has_towers, image_tower
from keras_vit.models.dit import classes_of
from keras_vit.models.inputs import inputs_of, table_of
from keras_vit.models.kinds import NAMELESS, kind_of, name_of
from keras_vit.models.metadata import stated_labels, stated_thresholds
from keras_vit.models.outputs import num_classes, returns_probabilities
from keras_vit.preparing.pixel_range import range_of
from keras_vit.preparing.preprocessing import evaluation_rule
from keras_vit.utils import extras, files

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


def check_model(model, limit=LIMIT):
    """Raises ValueError unless a model takes `inputs_of`, returns one tensor, and has less than 2 GB."""
    if not isinstance(model, keras.Model):
        raise ValueError(f"`model` must be a Keras model. Received: {type(model).__name__}")
    try:
        inputs, outputs = model.input_shape, model.output_shape
    except (AttributeError, ValueError):
        inputs = outputs = None
    if not inputs_of(model):
        raise ValueError(
            "The model must take images of a known size, integer ids of texts, or a dictionary of both, `images` and "
            "`texts`. Wrap a model without a size, such as a subclass: keras.Model(x, model(x)) with "
            "x = keras.Input(...). For a captioner, see export_writer. "
            f"Received: {model.name!r}, input shape {inputs}"
        )
    if has_towers(model) and not getattr(model.get_layer(TOWERS[2]), "pairs", True):
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


def check_labels(model, labels):
    """Raises ValueError unless `labels` is `None` or has one name per class."""
    named = hasattr(labels, "__len__") and not isinstance(labels, str)
    if labels is not None and (not named or len(labels) != num_classes(model)):
        raise ValueError(
            f"`labels` must be a list of {num_classes(model)} class names. Received: "
            f"{len(labels) if named else repr(labels)}"
        )


def check_probabilities(model, probabilities):
    """Raises ValueError if probabilities are asked for of a model without logits, or with one."""
    if probabilities and (why := kind_of(model).bounded):
        raise ValueError(f"{why} Received: probabilities=True with {model.name!r}")
    if probabilities and returns_probabilities(model):
        raise ValueError(f"The model returns probabilities already. Received: probabilities=True with {model.name!r}")
    if probabilities and model.output_shape[-1] == 1 and kind_of(model).probabilities is keras.ops.softmax:
        raise ValueError(
            "A softmax of one logit is always 1: apply a sigmoid to it. "
            f"Received: probabilities=True with {model.name!r}"
        )


def named_outputs(model, output, probabilities):
    """Returns a file's outputs by name, from the model's: see `models.kinds`. `runtimes.packed` is its inverse."""
    kind = kind_of(model)
    output = kind.probabilities(output) if probabilities else output
    size = inputs_of(model).get("images", ())[:2]
    return kind.named(output, size, probabilities or returns_probabilities(model))


def facts(model, labels):
    """Returns the facts that a user of an exported file needs, for JSON. Labels default to the model's metadata."""
    labels = stated_labels(model) if labels is None and name_of(model) not in NAMELESS else labels
    thresholds, shapes = stated_thresholds(model), inputs_of(model)
    return {
        "model": model.name,
        **(_of_images(image_tower(model), shapes["images"]) if "images" in shapes else {}),
        **(_of_images(model, shapes["clips"]) if "clips" in shapes else {}),
        **({"texts": _of_texts(model, shapes["texts"])} if "texts" in shapes else {}),
        **(_of_noise(model) if "times" in shapes else {}),
        "labels": None if labels is None else [str(label) for label in labels],
        **({} if thresholds is None else {"thresholds": thresholds}),
        **getattr(model.layers[-1], "export_facts", lambda output_shape: {})(model.output_shape),
    }


def _of_images(model, shape):
    known = range_of(model)
    taken = {
        "shape": [None, *shape],
        "range": None if known is None else list(known),
        "channels": {1: "gray", 3: "RGB"}.get(shape[-1]),
    }
    return {"input": taken, "preprocessing": evaluation_rule(model)}


def _of_noise(model):
    """Returns what noisy images are: nothing to be resized; their times, and the label of no class."""
    longest = FREQUENT / next(layer for layer in model.layers if isinstance(layer, TimeEmbedding)).scale
    return {"preprocessing": None, "sampling": {"times": [0, longest], "no_class": classes_of(model)}}


def _of_texts(model, shape):
    """Returns what makes ids of texts: the table of words, or the tokenizer's name, in the model's metadata."""
    table, rows = table_of(model)
    stated = getattr(table, "metadata", {})
    return {"shape": [None, *shape], "rows": rows, **{key: stated[key] for key in ("words", "tokens") if key in stated}}


def need(quantize=(), onnx=False, openvino=False):
    """Raises ImportError, with all extras to install, unless the converters of these formats are installed."""
    wanted = [*quantize, *["onnx"] * onnx, *["openvino"] * openvino]
    formats = [name for name in wanted if name in CONVERTERS]
    missing = {name: [m for m in CONVERTERS[name][1] if importlib.util.find_spec(m) is None] for name in formats}
    wanted = [name for name in formats if missing[name]]
    if wanted:
        each = "; ".join(f"{name!r} needs {', '.join(missing[name])}" for name in wanted)
        raise ImportError(f"{each}. {extras.install(*(CONVERTERS[name][0] for name in wanted))} Nothing was written.")


def parts(path):
    """Returns the paths of an exported file and of what its format has next to it."""
    return [path, *(path.with_suffix(ending) for ending in files.BESIDE.get(path.suffix, ()))]


def check_parts_free(path, overwrite, folder):
    """Checks that a file, or a folder, and what is written next to a file can be written: see `check_free`."""
    described = [] if folder else [path.with_name(f"{path.name}.json")]
    for each in (*parts(path), *described):
        files.check_free(each, overwrite)
