"""Models with texts in this package's own files: of a run that trained them, or saved by Keras."""

import contextlib
import json
import pathlib
import zipfile

import keras

from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.read import RUN, TRAINED
from keras_vit.layers.base import Layer
from keras_vit.models.backbone import TOWERS, has_towers
from keras_vit.models.captioner import is_captioner
from keras_vit.models.two_towers import two_towers

# Of layers, what may differ: it is no part of the function, or of training alone.
FREE = ("name", "dtype", "trainable", "metadata", "dropout", "attention_dropout", "stochastic_depth",
        "kernel_initializer", "bias_initializer")  # fmt: skip


def own_file(place):
    """Returns the path of a `.keras` file, that of a run included; `None` for any other source."""
    path = pathlib.Path(str(place)).expanduser()
    path = path / TRAINED if (path / RUN).is_file() else path
    return path if path.suffix == ".keras" and "://" not in str(place) else None


def holds(path, part):
    """Returns whether a part of a `.keras` file is more than an image tower: by default, of a model that writes."""
    if part is not None:
        return part in ("text", "both")
    names = set()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):  # others say what is wrong
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))["config"]
        names = {layer["config"]["name"] for layer in config["layers"]}
    return {"image", "text"} <= names and TOWERS[2] not in names


def changed(options, defaults):
    """Returns the options that are not the default, as a dictionary."""
    return {name: value for name, value in options._asdict().items() if value != getattr(defaults, name)}


def read_towers(path, part, overrides, sha256=None):
    """Returns a part of a `.keras` file with a model of images and texts.

    Args:
        path: The file.
        part: `"text"`, for the text tower or the decoder, or `"both"` or `None`, for a model as from `two_towers` or
            `captioner`.
        overrides: What the caller asks for besides. Every value must be `None`.
        sha256: As in `load_weights`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or has no texts; for overrides.
    """
    if said := ", ".join(f"{name}={value!r}" for name, value in overrides.items() if value is not None):
        raise ValueError(
            "Towers of a .keras file are as they were saved; only its image tower can be adapted, with part='image'. "
            f"Received: part={part!r}, {said}"
        )
    model = _opened(path, sha256)
    if part == "text":
        return model.get_layer(TOWERS[1])
    if is_captioner(model):
        return model
    image, text, similarity = map(model.get_layer, TOWERS)
    numbers = {name: getattr(similarity, f"logit_{name}", None) for name in ("scale", "bias")}
    return two_towers(image, text, **{name: _number(v) for name, v in numbers.items() if v is not None})


def _opened(path, sha256):
    """Returns the model of images and texts in a file; errors as in `read_towers`."""
    fetch(path, sha256=sha256)
    try:
        model = keras.models.load_model(path, compile=False)
    except Exception as error:  # of Keras, zipfile or h5py, whatever is damaged
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{str(path)!r} is damaged, or not a Keras model: {reason:.200}") from None
    if not has_towers(model) and not is_captioner(model):
        raise ValueError(
            f"{str(path)!r} must have an image tower, and a text tower or decoder. Received: {model.name!r}"
        )
    return model


def load_towers(model, source, given, sha256=None):
    """Fills a model of two towers, or one that writes, with the weights and words of a `.keras` file of an equal one.

    Args:
        model: The model.
        source: The file, or a run.
        given: What the caller asks for besides. It must be empty.
        sha256: As in `load_weights`.

    Raises:
        ValueError: If the source is no such file, or its model has other sizes or computes another function.
    """
    path = own_file(source)
    if path is None:
        raise ValueError(
            "Models of images and texts are loaded from a run or a .keras file; `from_pretrained` with part='both' "
            f"builds published ones. Received: {str(source)!r}"
        )
    if given:
        said = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(f"Models of images and texts are loaded as they were saved. Received: {said}")
    theirs = _opened(path, sha256)
    ours, shapes = ([weight.shape for weight in each.weights] for each in (model, theirs))
    if has_towers(model) != has_towers(theirs) or ours != shapes:
        wrong = next((pair for pair in zip(ours, shapes) if pair[0] != pair[1]), (f"{len(ours)} weights", len(shapes)))
        raise ValueError(
            f"The model in {str(path)!r} must have the sizes of the one to fill: {wrong[0]}. Received: {wrong[1]}"
        )
    pairs = zip(_settings(model), _settings(theirs))
    if wrong := next((pair for pair in pairs if pair[0] != pair[1]), None):
        raise ValueError(
            f"The model in {str(path)!r} must compute what the one to fill does: {_written(wrong[0])}. "
            f"Received: {_written(wrong[1])}"
        )
    model.set_weights(theirs.get_weights())
    words = [each.get_layer(TOWERS[1]).get_layer("words") for each in (model, theirs)]
    words[0].metadata = dict(words[1].metadata)
    return model


def _settings(model):
    """Returns what the layers of both towers compute: tuples of a layer's name, an option and its value."""
    layers = [layer for tower in TOWERS[:2] for layer in model.get_layer(tower).layers]
    found = [(layer.name, layer.get_config()) for layer in layers if isinstance(layer, Layer | keras.layers.Dense)]
    return [(layer, name, value) for layer, config in found for name, value in config.items() if name not in FREE]


def _written(setting):
    return "{} with {}={!r}".format(*setting)


def _number(variable):
    return float(keras.ops.convert_to_numpy(variable))
