"""The directory of a run: what lies in it, whose it is, and reading it back."""

import contextlib
import json
import pathlib
import zipfile

import filelock
import keras

from keras_vit import config, files, machine, snapshots

RECIPE, DATA, LABELS, MACHINE = "recipe.json", "data.json", "labels.txt", "machine.json"
MODEL, BEST, SAVED_MODEL, TFLITE, HISTORY = "model.keras", "best.keras", "saved_model", "model.tflite", "history.csv"
LOCK = ".lock"
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

    Args:
        folder: The directory; made if it is not there.
        recipe: The `Recipe`.
        data: Dictionary that tells the run's data from any other.
        class_names: Names of the classes, in order.
    """
    folder = pathlib.Path(folder)
    recipe = json.loads(json.dumps(config.to_dict(recipe)))
    if is_run(folder) and snapshots.exists(folder):
        for file, here in ((RECIPE, {k: recipe[k] for k in IDENTITY}), (DATA, data)):
            there = _read(folder / file)
            different = [f"{k}: {there.get(k)!r} there, {here[k]!r} here" for k in here if there.get(k) != here[k]]
            if different:
                kind = "the run of another recipe" if file == RECIPE else "a run on other data"
                raise ValueError(
                    f"{str(folder)!r} holds {kind}. Choose another directory, or remove that one. "
                    f"Different: {'; '.join(different)}"
                )
        _write(folder / RECIPE, recipe)  # what is no part of the run's identity may differ
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
    (folder / LABELS).write_text("\n".join(class_names) + "\n")
    _write(folder / DATA, data)
    _write(folder / MACHINE, machine.describe())
    _write(folder / RECIPE, recipe)


def _refuse_foreign(folder):
    if not is_run(folder) and folder.exists() and any(path.name != LOCK for path in folder.iterdir()):
        raise ValueError(f"{str(folder)!r} is not empty and holds no run. Choose another directory.")


def load(folder, file):
    """Returns the model, the `Recipe`, the class names and the data's dictionary of a run.

    Raises:
        FileNotFoundError: If the run has not come to its end.
        ValueError: If a file is damaged.
    """
    folder = pathlib.Path(folder)
    if not (folder / file).exists():
        raise FileNotFoundError(f"The run in {str(folder)!r} has no {file} yet: call fit again, and it goes on.")
    recipe = config.from_dict(_read(folder / RECIPE))
    try:
        if not zipfile.is_zipfile(folder / file):
            raise ValueError("no zip archive")
        model = keras.models.load_model(folder / file)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(folder / file)!r} is damaged: {str(error).splitlines()[0]}") from None
    return model, recipe, tuple((folder / LABELS).read_text().splitlines()), _read(folder / DATA)


def trained_on(folder):
    """Returns what the run was last trained on, as `machine.describe` tells it, or an empty dictionary."""
    path = pathlib.Path(folder) / MACHINE
    return _read(path) if path.exists() else {}


def _write(path, values):
    with files.replacing(path) as temporary:
        temporary.write_text(json.dumps(values, indent=2))


def _read(path):
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}") from None
