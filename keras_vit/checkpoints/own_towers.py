"""Towers in this package's own files: of a run that trained them, or saved by Keras."""

import pathlib

import keras

from keras_vit.checkpoints.files.read import RUN, TRAINED
from keras_vit.models.backbone import TOWERS, has_towers
from keras_vit.models.two_towers import two_towers


def own_file(place):
    """Returns the path of a `.keras` file, that of a run included; `None` for any other source."""
    path = pathlib.Path(str(place)).expanduser()
    path = path / TRAINED if (path / RUN).is_file() else path
    return path if path.suffix == ".keras" else None


def read_towers(path, part, overrides):
    """Returns the text tower of a `.keras` file, or both towers, as from `two_towers`.

    Args:
        path: The file.
        part: `"text"` or `"both"`.
        overrides: What the caller asks for besides, of which there must be none.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or has not two towers; for overrides.
    """
    if overrides:
        said = ", ".join(f"{name}={value!r}" for name, value in overrides.items())
        raise ValueError(f"Towers of a .keras file are as they were saved. Received: part={part!r}, {said}")
    model = _opened(path)
    image, text, similarity = map(model.get_layer, TOWERS)
    if part == "text":
        return text
    numbers = {name: getattr(similarity, f"logit_{name}", None) for name in ("scale", "bias")}
    return two_towers(image, text, **{name: _number(v) for name, v in numbers.items() if v is not None})


def _opened(path):
    """Returns the model of two towers in a file; arguments and errors as in `read_towers`."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    try:
        model = keras.models.load_model(path, compile=False)
    except Exception as error:  # of Keras, zipfile or h5py, whatever is damaged
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{str(path)!r} is damaged, or not a Keras model: {reason:.200}") from None
    if not has_towers(model):
        raise ValueError(f"{str(path)!r} must have an image tower and a text tower. Received: {model.name!r}")
    return model


def load_towers(model, source):
    """Fills a model of two towers with the weights, and the table of words, of a `.keras` file of equal ones.

    Raises:
        ValueError: If the source is no such file, or its towers have other sizes.
    """
    path = own_file(source)
    if path is None:
        raise ValueError(
            "Two towers are loaded from a run or a .keras file; `from_pretrained` with part='both' builds published "
            f"ones. Received: {str(source)!r}"
        )
    theirs = _opened(path)
    ours, shapes = ([weight.shape for weight in each.weights] for each in (model, theirs))
    if ours != shapes:
        wrong = next((pair for pair in zip(ours, shapes) if pair[0] != pair[1]), (len(ours), len(shapes)))
        raise ValueError(
            f"The towers of {str(path)!r} must have the sizes of the model's: {wrong[0]}. Received: {wrong[1]}"
        )
    model.set_weights(theirs.get_weights())
    words = [each.get_layer(TOWERS[1]).get_layer("words") for each in (model, theirs)]
    words[0].metadata = dict(words[1].metadata)
    return model


def _number(variable):
    return float(keras.ops.convert_to_numpy(variable))
