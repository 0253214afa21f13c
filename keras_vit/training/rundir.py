"""The directory of a run: what lies in it, whose it is, and reading it back."""

import contextlib
import json
import pathlib
import zipfile
import zlib

import filelock
import keras

from keras_vit import config, files, machine
from keras_vit.labels import check_labels, read_labels, write_labels
from keras_vit.training import state

RECIPE, DATA, LABELS, MACHINE = "recipe.json", "data.json", "labels.txt", "machine.json"
MODEL, BEST, SAVED_MODEL, TFLITE, HISTORY = "model.keras", "best.keras", "saved_model", "model.tflite", "history.csv"
LOCK = ".lock"
ABSENT = object()
CONTENTS = ("train_contents", "validation_contents")  # what `data.json` of older runs does not have
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, OSError, EOFError, NotImplementedError)
IDENTITY = ("name", "model", "data", "augment", "optim", "seed")  # what makes two runs the same


def is_run(folder):
    """Returns whether a directory holds a run."""
    return (pathlib.Path(folder) / RECIPE).is_file()


@contextlib.contextmanager
def claimed(folder, recipe, data, class_names, *, writes=True):
    """A block in which a directory is this process's own; arguments as in `claim`, and whether this process writes.

    Raises:
        ValueError: As `claim`, and if another process trains in it.
        OSError: If it cannot be made or written to.
    """
    folder = pathlib.Path(folder)
    check_labels(class_names)
    if not writes:
        yield
        return
    _refuse_foreign(folder)
    lock = filelock.FileLock(folder / LOCK, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout:
        raise ValueError(
            f"Another process is training in {str(folder)!r}. Wait for it, or choose another directory."
        ) from None
    except OSError as error:
        raise OSError(f"{str(folder)!r} is no directory that can be written to: {error.strerror}.") from None
    try:
        claim(folder, recipe, data, class_names)
        yield
    finally:
        lock.release()


def claim(folder, recipe, data, class_names):
    """Writes what the run is into its directory, or raises ValueError if another run, or something else, is there.

    The recipe comes first: with it, and without a state, a directory is one that may be claimed anew.

    Args:
        folder: The directory; made if it is not there.
        recipe: The `Recipe`.
        data: Dictionary that tells the run's data from any other.
        class_names: Names of the classes, in order.
    """
    folder = pathlib.Path(folder)
    check_labels(class_names)
    values = _plain(recipe)
    if is_run(folder) and state.exists(folder):
        _same_run(folder, values, data)
        _write(folder / RECIPE, values)  # what is no part of the run's identity may differ
        write_labels(folder / LABELS, class_names)
        _write(folder / DATA, _read(folder / DATA) | data)  # with what earlier versions did not note
        _write(folder / MACHINE, machine.describe())
        return
    _refuse_foreign(folder)
    finished = [name for name in (MODEL, SAVED_MODEL, TFLITE) if (folder / name).exists()]
    if finished:
        raise ValueError(
            f"{str(folder)!r} holds {', '.join(finished)} of a run whose states are gone. "
            "Choose another directory, or remove them."
        )
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / RECIPE, values)
    write_labels(folder / LABELS, class_names)
    _write(folder / DATA, data)
    _write(folder / MACHINE, machine.describe())


def _refuse_foreign(folder):
    if is_run(folder) or not folder.exists():
        return
    names = {path.name for path in folder.iterdir()}
    begun = {f"{files.UNFINISHED}{name}" for name in (RECIPE, LABELS, DATA, MACHINE)}
    begun |= {LABELS, DATA, MACHINE} if LOCK in names else set()  # earlier versions wrote these first
    if names - begun - {LOCK}:
        raise ValueError(f"{str(folder)!r} is not empty and holds no run. Choose another directory.")


def _same_run(folder, recipe, data):
    """Raises ValueError, with the settings that differ, unless a directory holds this run."""
    default = _plain(config.Recipe(name="", model={}))  # earlier versions had fewer settings
    only = lambda values: {k: v for k, v in values.items() if k in IDENTITY}  # noqa: E731
    there, here = (_dotted(only(default)) | _dotted(only(values)) for values in (_read(folder / RECIPE), recipe))
    different = _different(there, here)
    if different:
        longer = list(different) == ["optim.epochs"] and here["optim.epochs"] > there["optim.epochs"]
        advice = (
            f". To train longer, start a new run from its weights, with a schedule of its own: model.weights={folder} "
            "and another directory (--workdir)."
        )
        raise ValueError(
            f"{str(folder)!r} holds the run of another recipe. Choose another directory, or remove that one. "
            f"Different: {'; '.join(different.values())}{advice if longer and (folder / MODEL).exists() else ''}"
        )
    there = _read(folder / DATA)
    unknown = [name for name in CONTENTS if name not in there or name not in data]
    there, here = ({k: v for k, v in values.items() if k not in unknown} for values in (there, data))
    different = _different(_dotted(there), _dotted(here))
    if different:
        raise ValueError(
            f"{str(folder)!r} holds a run on other data. Choose another directory, or remove that one. "
            f"Different: {'; '.join(different.values())}"
        )


def _different(there, here):
    """Returns what to say of each dotted setting in which two dictionaries differ."""
    both = {key: [values.get(key, ABSENT) for values in (there, here)] for key in {**there, **here}}
    return {k: f"{k}: {_short(old)} there, {_short(new)} here" for k, (old, new) in both.items() if old != new}


def _short(value):
    text = "nothing" if value is ABSENT else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _dotted(values, prefix=""):
    """Returns nested dictionaries as one, from dotted names to values."""
    found = {}
    for key, value in values.items():
        found |= _dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def _plain(recipe):
    return json.loads(json.dumps(config.to_dict(recipe)))


def load(folder, file):
    """Returns the model, the `Recipe`, the class names and the data's dictionary of a run.

    Raises:
        FileNotFoundError: If the run has not come to its end.
        ValueError: If a file is damaged.
    """
    folder = pathlib.Path(folder)
    if not (folder / file).exists():
        raise FileNotFoundError(f"The run in {str(folder)!r} has no {file} yet: call fit again, and it goes on.")
    recipe, data = _recipe(folder / RECIPE), _read(folder / DATA)
    if not (folder / LABELS).exists():
        raise FileNotFoundError(f"The run in {str(folder)!r} has no {LABELS}.")
    names = read_labels(folder / LABELS)
    model = read_model(folder / file)
    if file in (MODEL, BEST) and len(names) != model.output_shape[-1]:
        raise ValueError(
            f"{str(folder / LABELS)!r} is damaged: it names {len(names)} classes, of a model with "
            f"{model.output_shape[-1]}. The same call of fit writes it anew."
        )
    return model, recipe, names, data


def read_model(path):
    """Returns the model in a `.keras` file.

    Raises:
        ValueError: If the file is damaged, or no Keras model.
    """
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("no zip archive")
        return keras.models.load_model(path, compile=False)  # whatever it was compiled with
    except (*_DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        said = str(error).strip() or type(error).__name__
        raise ValueError(f"{str(path)!r} is damaged, or no Keras model: {said.splitlines()[0]}") from None


def trained_on(folder):
    """Returns what the run was last trained on, as `machine.describe` tells it, or an empty dictionary."""
    path = pathlib.Path(folder) / MACHINE
    return _read(path) if path.exists() else {}


def _write(path, values):
    with files.replacing(path) as temporary:
        temporary.write_text(json.dumps(values, indent=2))


def _read(path):
    """Returns the dictionary in a file of JSON."""
    try:
        values = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{str(path)!r} is damaged: it holds {type(values).__name__}, no dictionary")
    return values


def _recipe(path):
    values = _read(path)
    try:
        return config.from_dict(values)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{str(path)!r} is damaged, or of another version: {error}") from None
