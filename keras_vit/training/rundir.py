"""The directory of a run: which files it has, which run owns it, and how to read it."""

import contextlib
import dataclasses
import hashlib
import json
import pathlib
import zipfile
import zlib

import keras

from keras_vit import config
from keras_vit.config.removed import ADDED, BANDS, REMOVED
from keras_vit.models.backbone import keeper
from keras_vit.models.outputs import check_labels, num_classes, read_labels, write_labels
from keras_vit.models.whole_autoencoder import LATENTS
from keras_vit.tasks.base import UnknownTaskError
from keras_vit.training import state
from keras_vit.training.locks import LOCK, locked
from keras_vit.training.longer import longer
from keras_vit.utils import files, machine
from keras_vit.utils.names import composed
from keras_vit.utils.packed import check_packed

RECIPE, DATA, LABELS, MACHINE = "recipe.json", "data.json", "labels.txt", "machine.json"
MODEL, BEST, SAVED_MODEL, TFLITE, HISTORY = "model.keras", "best.keras", "saved_model", "model.tflite", "history.csv"
LEARNER = "learner.keras"  # the fitted model, if it has more weights than the kept one
SCALE = "teacher_scale"
ABSENT = object()
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, OSError, EOFError, NotImplementedError)
IDENTITY = ("name", "task", "model", "data", "augment", "optim", "seed")  # options that identify a run


def is_run(folder):
    """Returns whether a directory contains a run."""
    return (pathlib.Path(folder) / RECIPE).is_file()


def contents_of(teacher):
    """Returns a hash of a teacher's weights as a dictionary, which is empty without a teacher.

    Of the encoder of an autoencoder it has the scale of the latents too, which is no weight.

    All processes must call it, since a teacher may be sharded over them.
    """
    if teacher is None:
        return {}
    digest = hashlib.sha256()
    for weight in teacher.weights:
        digest.update(state.to_numpy(weight.value).tobytes())
    scaled = next((layer for layer in teacher.layers if layer.name == LATENTS), None)
    scale = {} if scaled is None else {SCALE: [scaled.get_config()[name] for name in ("scale", "offset")]}
    return {"teacher_contents": digest.hexdigest(), **scale}


@contextlib.contextmanager
def claimed(folder, recipe, data, class_names, *, writes=True):
    """A block in which a lock file keeps other processes out of a run directory.

    Args:
        folder, recipe, data, class_names: As in `claim`.
        writes: Whether this process writes the files of the run. Others take no lock.

    Raises:
        ValueError: As `claim`, and if another process is training in the directory.
        OSError: If the directory cannot be created or written to.
    """
    folder = pathlib.Path(folder)
    check_labels(class_names)
    if not writes:
        yield
        return
    _refuse_foreign(folder)
    with locked(folder):
        files.sweep(folder, age=0)  # left by a killed process: the lock says that none is writing
        claim(folder, recipe, data, class_names)
        yield


def claim(folder, recipe, data, class_names):
    """Writes a run's recipe, data and labels into its directory.

    The recipe is written first: a directory with a recipe but no training state may be claimed again.

    Args:
        folder: The directory; created if missing.
        recipe: The `Recipe`.
        data: Dictionary that identifies the data.
        class_names: Names of the classes, in order.

    Raises:
        ValueError: If the directory contains another run, a run on other data, or other files.
    """
    folder = pathlib.Path(folder)
    check_labels(class_names)
    if is_run(folder) and state.exists(folder):
        _same_run(folder, recipe, data)
    else:
        _refuse_foreign(folder)
        _refuse_finished(folder)
        folder.mkdir(parents=True, exist_ok=True)
    _write(folder / RECIPE, _plain(recipe))  # options outside of `IDENTITY` may differ
    write_labels(folder / LABELS, class_names)
    _write(folder / DATA, data)
    _write(folder / MACHINE, machine.describe())


def _refuse_finished(folder):
    finished = [name for name in (MODEL, LEARNER, SAVED_MODEL, "model.onnx") if (folder / name).exists()]
    finished += sorted(path.name for path in folder.glob("model*.tflite"))
    if finished:
        raise ValueError(
            f"{str(folder)!r} contains {', '.join(finished)} but no training state to resume from. "
            "Choose another directory or delete it."
        )


def _refuse_foreign(folder):
    if is_run(folder) or not folder.exists():
        return
    names = {path.name for path in folder.iterdir()}
    begun = {name for name in names if name.startswith(files.UNFINISHED)}
    if names - begun - {LOCK}:
        raise ValueError(
            f"{str(folder)!r} is not empty and contains no run: it has no file {RECIPE}. Choose another directory."
        )


def _same_run(folder, recipe, data):
    """Raises ValueError, with the options that differ, unless a directory contains this run."""
    there, here = (_identity(_plain(one), recipe) for one in (recipe_of(folder), recipe))
    different = _different(there, here)
    if different:
        more = list(different) == ["optim.epochs"] and here["optim.epochs"] > there["optim.epochs"]
        advice = f". {longer(folder, recipe, data.get('arrays', False))}" if more and (folder / MODEL).exists() else ""
        raise ValueError(
            f"{str(folder)!r} contains the run of another recipe. Choose another directory or delete this one. "
            f"Different: {'; '.join(different.values())}{advice}"
        )
    unsaid = {name: data[name] for name in (SCALE, "words") if name in data}  # in runs of versions before it
    different = _different(_dotted(unsaid | read_json(folder / DATA)), _dotted(data))
    if different:
        raise ValueError(
            f"{str(folder)!r} contains a run on other data. Choose another directory or delete this one. "
            f"{'A dataset must give the same examples whenever it is read. ' if data.get('arrays') else ''}"
            f"Different: {'; '.join(different.values())}"
        )


def _identity(values, recipe):
    """Returns the options that identify a run, by dotted names.

    Args:
        values: Dictionary of a recipe, such as the content of `recipe.json`.
        recipe: The `Recipe`, whose task says which options only measure.
    """
    options = {name: unset for name, (unset, _) in REMOVED.items()} | _dotted(values)  # as earlier versions hashed them
    kind = options["data.source"].partition(":")[0]
    if kind in ("folder", "table"):  # which may be moved: the data are known by their hashes
        options["data.source"] = f"{kind}:"
    # Keras draws a seed for a layer that has none; here layers draw by the recipe's.
    options["augment.layers"] = config.without("seed", options["augment.layers"])
    free = {f"task.{name}" for name in recipe.task.measured}
    added = BANDS | ADDED.get(type(recipe.task).__name__, {})
    free |= {name for name, value in added.items() if options.get(name, value) == value}
    return {k: v for k, v in options.items() if k.partition(".")[0] in IDENTITY and k not in free}


def mark(recipe, data):
    """Returns a hash that identifies a run, by its recipe and data: its training states and models carry it.

    Args:
        recipe: The `Recipe`.
        data: Dictionary that identifies the data, as in `claim`.
    """
    sources = [data.get(name) for name in ("train", "validation", "train_contents", "validation_contents")]
    identity = [_identity(_plain(recipe), recipe), sources]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def _different(there, here):
    """Returns a phrase for each dotted key in which two dictionaries differ."""
    both = {key: [values.get(key, ABSENT) for values in (there, here)] for key in {**there, **here}}
    return {k: f"{k}: {_short(old)} there, {_short(new)} here" for k, (old, new) in both.items() if old != new}


def _short(value):
    text = "nothing" if value is ABSENT else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _dotted(values, prefix=""):
    """Returns nested dictionaries as one, from dotted keys to values."""
    options = {}
    for key, value in values.items():
        options |= _dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return options


def _plain(recipe):
    return json.loads(json.dumps(config.to_dict(recipe)))


def load(folder, file):
    """Returns the model, the `Recipe`, the class names and the data's dictionary of a run.

    Raises:
        FileNotFoundError: If the run is not finished.
        ValueError: If a file is damaged.
    """
    folder = pathlib.Path(folder)
    if not (folder / file).exists():
        raise FileNotFoundError(f"The run in {str(folder)!r} has no {file} yet. Call `fit` again to resume it.")
    recipe, data = recipe_of(folder), read_json(folder / DATA)
    if not (folder / LABELS).exists():
        raise FileNotFoundError(f"The run in {str(folder)!r} has no {LABELS}.")
    names = read_labels(folder / LABELS)
    model = read_model(folder / file)
    noted = getattr(keeper(model), "metadata", {})
    if noted.get("run") not in (None, mark(recipe, data)):
        raise ValueError(
            f"{str(folder / file)!r} is a model of another run: its recipe or data differ from those in "
            f"{RECIPE} and {DATA}. Copy the files of a run together."
        )
    labels = list(map(composed, noted.get("labels", names) if "run" in noted else names))
    fits = list(names) == labels and dataclasses.replace(recipe.task, classes=names).fits(model)
    if file in (MODEL, BEST) and not fits:
        raise ValueError(
            f"{str(folder / LABELS)!r} is damaged: it must name the {num_classes(model)} classes of the model. "
            f"Received: {len(names)}, {_short(names)}. The same call of `fit` rewrites it."
        )
    return model, recipe, names, data


def read_model(path):
    """Returns the model in a `.keras` file.

    Raises:
        ValueError: If the file is damaged, or not a Keras model.
    """
    try:
        zipfile.ZipFile(files.regular(path)).close()
        check_packed(path)
        return keras.models.load_model(path, compile=False)  # its optimizer may be unknown here
    except PermissionError:
        raise
    except (*_DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).strip() or type(error).__name__
        raise ValueError(f"{str(path)!r} is damaged, or not a Keras model: {reason.splitlines()[0]}") from None


def trained_on(folder):
    """Returns the machine that last trained the run, as `machine.describe` does, or an empty dictionary."""
    path = pathlib.Path(folder) / MACHINE
    return read_json(path) if path.exists() else {}


def _write(path, values):
    with files.replacing(path) as temporary:
        temporary.write_text(json.dumps(values, indent=2))


def read_json(path):
    """Returns the dictionary in a JSON file."""
    try:
        values = json.loads(files.read(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{str(path)!r} is damaged: it must contain a dictionary. Received: {type(values).__name__}")
    return values


def recipe_of(folder):
    """Returns the `Recipe` of the run in a directory, as it was asked for: the data's classes are not in its task."""
    path = pathlib.Path(folder) / RECIPE
    values = read_json(path)
    try:
        return config.from_dict(values)
    except UnknownTaskError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{str(path)!r} is damaged, or of another version: {error}") from None
