"""Models of several inputs in this package's own files: of a run that trained them, or saved by Keras."""

import contextlib
import json
import os
import pathlib
import zipfile

import keras

from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.repository import RUN, TRAINED, trained_at, trained_in
from keras_vit.layers.base import Layer
from keras_vit.models import open_detector, open_segmenter
from keras_vit.models.backbone import TOWERS
from keras_vit.models.dit import INPUTS, TEXT, TEXT_INPUTS, reads_texts
from keras_vit.models.two_towers import two_towers
from keras_vit.models.whole_autoencoder import DECODER, LATENTS
from keras_vit.traits import Traits
from keras_vit.utils.downloads import is_repository
from keras_vit.utils.packed import check_packed

PARTS_OF = {  # structures, and their parts
    "open_detector": open_detector.PARTS,
    "open_segmenter": open_segmenter.PARTS,
    "translator": ("source", "text"),
}
ALONE = ("dit", "autoencoder")  # structures without an image tower
# Of layers, what may differ: it is no part of the function, or of training alone.
FREE = ("name", "dtype", "trainable", "metadata", "dropout", "attention_dropout", "stochastic_depth",
        "kernel_initializer", "bias_initializer", "pairs")  # fmt: skip


def own_file(place):
    """Returns the path of a `.keras` file, that of a run included; `None` for any other source.

    A repository, `hf://owner/name`, is asked for one, which is downloaded.
    """
    if not isinstance(place, (str, os.PathLike)):
        return None
    if is_repository(place):
        path = trained_in(place)
    elif "://" in str(place):
        return None
    else:
        path = pathlib.Path(place).expanduser()
        path = (path.is_dir() and trained_at(path)) or path
    path = path / TRAINED if path and (path / RUN).is_file() else path
    return path if path and path.suffix == ".keras" else None


def holds(path, part):
    """Returns whether a part of a `.keras` file is more than an image tower: of `None`, if it writes or draws."""
    if part is not None:
        return isinstance(part, str) and part in ("text", "both")
    names = set()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):  # others say what is wrong
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))["config"]
        names = {layer["config"]["name"] for layer in config["layers"]}
    return ({"image", "text"} <= names and TOWERS[2] not in names) or any(
        set(whole) <= names for whole in (INPUTS, TEXT_INPUTS, (LATENTS, DECODER))
    )


def read_own(path, part, overrides, sha256=None):
    """Returns a part of a `.keras` file with a model of images and texts, or the DiT or autoencoder in one.

    Args:
        path: The file.
        part: `"text"`, for the text tower or the decoder, or `"both"` or `None`, for a model as from `two_towers` or
            `captioner`. `None` of a DiT or an autoencoder.
        overrides: Other arguments of the caller. Each must be `None`.
        sha256: As in `load_weights`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or has no texts; for overrides.
    """
    if received := ", ".join(f"{name}={value!r}" for name, value in overrides.items() if value is not None):
        raise ValueError(
            "Models of several inputs are as they were saved; of images and texts, part='image', the image tower, can "
            f"be adapted. Received: part={part!r}, {received}"
        )
    model = opened(path, sha256)
    structure = Traits(model).structure
    if structure in ALONE and part is None:
        return model
    _check_texts(model, structure, path)
    if part == "text":
        return model.get_layer(TOWERS[1])
    if structure == "open_segmenter":
        return open_segmenter.with_pairs(model, False)
    if structure in ("captioner", *PARTS_OF):
        return model
    image, text, similarity = map(model.get_layer, TOWERS)
    numbers = {name: getattr(similarity, f"logit_{name}", None) for name in ("scale", "bias")}
    return two_towers(image, text, **{name: _number(v) for name, v in numbers.items() if v is not None})


def opened(path, sha256=None):
    """Returns the model in a file; errors as in `read_own`."""
    fetch(path, sha256=sha256)
    check_packed(path)
    try:
        return keras.models.load_model(path, compile=False)
    except Exception as error:  # of Keras, zipfile or h5py, whatever is damaged
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{str(path)!r} is damaged, or not a Keras model: {reason:.200}") from None


def _check_texts(model, structure, path):
    """Raises ValueError for a model without texts."""
    if structure not in ("towers", "captioner", *PARTS_OF):
        raise ValueError(
            f"{str(path)!r} must have an image tower, and a text tower or decoder. Received: {model.name!r}"
        )


def load_own(model, source, options, sha256=None):
    """Fills a model of several inputs with the weights, and the words, of a `.keras` file of an equal one.

    Args:
        model: The model.
        source: The file, or a run.
        options: Other arguments of the caller. It must be empty.
        sha256: As in `load_weights`.

    Raises:
        ValueError: If the source is no such file, or its model has other sizes or computes another function.
    """
    path = own_file(source)
    if path is None:
        raise ValueError(
            "Models of several inputs are loaded from a run or a .keras file; `from_pretrained` builds published ones. "
            f"Received: {str(source)!r}"
        )
    if options:
        received = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise ValueError(f"Models of several inputs are loaded as they were saved. Received: {received}")
    other = opened(path, sha256)
    structures = [Traits(each).structure for each in (model, other)]
    alone = structures[0] in ALONE
    if not alone:
        _check_texts(other, structures[1], path)
    sizes, shapes = ([weight.shape for weight in each.weights] for each in (model, other))
    if structures[0] != structures[1] or sizes != shapes:
        wrong = next(
            (pair for pair in zip(sizes, shapes) if pair[0] != pair[1]), (f"{len(sizes)} weights", len(shapes))
        )
        raise ValueError(
            f"The model in {str(path)!r} must have the sizes of the one to fill: {wrong[0]}. Received: {wrong[1]}"
        )
    parts, others = (_parts(each, structures[0]) for each in (model, other))
    ways = [[_calls(part) for part in each] for each in (parts, others)]
    if alone and ways[0] != ways[1]:  # what is computed between layers, such as a velocity from an image
        raise ValueError(
            f"The model in {str(path)!r} must predict what the one to fill does: see `predicts` of `dit`. Received: "
            "another computation"
        )
    pairs = zip(_settings(parts), _settings(others))
    if wrong := next((pair for pair in pairs if pair[0] != pair[1]), None):
        raise ValueError(
            f"The model in {str(path)!r} must compute what the one to fill does: {_written(wrong[0])}. "
            f"Received: {_written(wrong[1])}"
        )
    if ways[0] != ways[1]:
        raise ValueError(
            f"The model in {str(path)!r} must compute what the one to fill does, such as with the same masks. "
            "Received: another computation"
        )
    model.set_weights(other.get_weights())
    keepers = {-1: "words"} if not alone else {0: "rescale", **({-1: "words"} if len(parts) > 1 else {})}
    for place, keeper in keepers.items():
        parts[place].get_layer(keeper).metadata = dict(others[place].get_layer(keeper).metadata)
    return model


def _parts(model, structure):
    """Returns the models that a model of several inputs is made of, that of the texts last."""
    if structure in ALONE:
        return [model, model.get_layer(TEXT)] if structure == "dit" and reads_texts(model) else [model]
    image, text, *joined = PARTS_OF.get(structure, TOWERS[:2])
    return [*map(model.get_layer, (image, *joined, text))]


def _settings(parts):
    """Returns what the layers of models compute: tuples of a layer's name, an option and its value."""
    inside = [layer for part in parts for layer in getattr(part, "layers", [part])]
    layers = [layer for layer in inside if isinstance(layer, Layer | keras.layers.Dense)]
    configs = [(layer.name, layer.get_config()) for layer in layers]
    return [(layer, name, value) for layer, config in configs for name, value in config.items() if name not in FREE]


def _calls(model):
    """Returns what the operations of a functional model are called with, by the names of layers and kinds of others.

    Dropout, which a model may have or not, is passed over.
    """
    layers = model.get_config().get("layers", ())
    names = {each["name"]: each["class_name"] if ".ops." in each["module"] else each["name"] for each in layers}
    passed = {each["name"]: each["inbound_nodes"] for each in layers if each["class_name"] == "Dropout"}

    def plain(value):
        if isinstance(value, dict):
            name, *rest = value.get("config", {}).get("keras_history", ("",))
            if name in passed:
                return plain(passed[name][0]["args"][0])
            return (
                (names[name], *rest) if name else {key: plain(each) for key, each in value.items() if each is not None}
            )
        return [plain(each) for each in value] if isinstance(value, list | tuple) else value

    kept = [each for each in layers if each["name"] not in passed]
    return sorted(repr((names[each["name"]], plain(each["inbound_nodes"]))) for each in kept)


def _written(setting):
    return "{} with {}={!r}".format(*setting)


def _number(variable):
    return float(keras.ops.convert_to_numpy(variable))
