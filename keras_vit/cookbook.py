"""Recipes by name: list, load, build, train."""

import hashlib
import importlib.util
import inspect
import json
import pathlib
import runpy

import keras

from keras_vit import checks, config
from keras_vit.models import vit

_PACKAGE = pathlib.Path(__file__).parent
RECIPE, MODEL, LABELS = "recipe.json", "model.keras", "labels.txt"


def folder(name):
    """Returns where `recipes` or `saved_models` are: in the installed package, else in the checkout beside it."""
    return next(path for path in (_PACKAGE / name, _PACKAGE.parent / name) if path.is_dir())


def list_recipes():
    """Returns the names of the recipes that come with the package."""
    return sorted(path.stem for path in folder("recipes").glob("*.py"))


def recipe_path(name):
    """Returns the file of a recipe: one that comes with the package, or a path to your own.

    Raises:
        ValueError: For an unknown name, with those spelled like it.
    """
    path = pathlib.Path(name)
    if path.suffix == ".py" and path.is_file():
        return path
    if str(name) not in list_recipes():
        raise ValueError(f"There is no recipe {str(name)!r}. {checks.near(name, list_recipes())}")
    return folder("recipes") / f"{name}.py"


def load_recipe(name, changes=None):
    """Reads a recipe.

    Args:
        name: Name of a recipe (see `list_recipes`), or the path of a Python file that defines `recipe`.
        changes: Dictionary from dotted names to values, such as `{"optim.epochs": 3}`.

    Returns:
        A `keras_vit.config.Recipe`.

    Raises:
        ValueError: For an unknown recipe or name, or a value outside its range.
        TypeError: For a value of the wrong type.
    """
    path = recipe_path(name)
    recipe = runpy.run_path(str(path)).get("recipe")
    if not isinstance(recipe, config.Recipe):
        raise ValueError(f"{str(path)!r} does not define `recipe`, a keras_vit.config.Recipe. Received: {recipe!r}")
    return check(config.override(recipe, changes or {}))


def check(recipe):
    """Returns the recipe if its `model` binds to `vit`'s arguments, else raises ValueError."""
    known = inspect.signature(vit).parameters
    for name in recipe.model:
        if name not in known:
            raise ValueError(f"`vit` has no argument {name!r}. {checks.near(name, known)}")
    return recipe


def from_recipe(name, changes=None, *, pretrained=False):
    """Builds the model of a recipe.

    Args:
        name: As in `load_recipe`, or a `Recipe`.
        changes: As in `load_recipe`.
        pretrained: Whether to fill it with the trained weights that ship with the package.

    Returns:
        A Keras model; see `keras_vit.vit`.

    Raises:
        ValueError: As `load_recipe`; if the recipe has no trained weights, or their file is damaged.
    """
    recipe = name if isinstance(name, config.Recipe) else load_recipe(name, changes)
    path = weights_path(recipe) if pretrained else None
    keras.utils.set_random_seed(recipe.seed)
    model = vit(**check(recipe).model)
    if path:
        model.load_weights(path)
    return model


def weights_path(recipe):
    """Returns the file of a recipe's trained weights, once its hash is found right."""
    if recipe.weights is None:
        raise ValueError(f"The recipe {recipe.name!r} has no trained weights with the package. Train it: fit {recipe.name}")
    path = folder("saved_models") / recipe.weights.file
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != recipe.weights.sha256:
        raise ValueError(f"{str(path)!r} is damaged: SHA-256 {found}, expected {recipe.weights.sha256}.")
    return path


def datasets(recipe, *, train=None, validation=None):
    """Returns the training and the validation data of a recipe.

    Each pass over the training data is one epoch, shuffled and augmented anew.

    Args:
        recipe: A `Recipe`, or a name.
        train: `(images, labels)` arrays to use in place of the recipe's data.
        validation: Likewise.

    Returns:
        Two `tf.data.Dataset`s of `(images, one-hot labels)`.

    Raises:
        ValueError, FileNotFoundError: For data that is not there or does not fit.
    """
    _need_tensorflow("Data pipelines")
    from keras_vit.data import pipeline

    recipe, (train, validation) = _sources(recipe, train, validation)
    size = _image_shape(recipe)
    return pipeline.training_batches(train, recipe, size), pipeline.evaluation_batches(validation, recipe, size)


def fit(recipe, workdir=None, *, train=None, validation=None, verbose="auto"):
    """Trains the model of a recipe, or goes on where the run in the directory stopped.

    Args:
        recipe: A `Recipe`, or a name.
        workdir: Directory of the run; `runs/NAME` if `None`. Gets `recipe.json`, `history.csv`, `labels.txt`,
            `best.keras` and `last.keras` after each epoch, and `model.keras` (the last epoch, without the
            optimizer) at the end.
        train: `(images, labels)` arrays to use in place of the recipe's data.
        validation: Likewise.
        verbose: As in `keras.Model.fit`.

    Returns:
        The model, with the weights of the last epoch, and the history: a dictionary of lists, one value an epoch.

    Raises:
        ValueError, FileNotFoundError: For data that is not there or does not fit, or a directory that holds
            another recipe's run.
        RuntimeError: When the loss becomes NaN or infinite.
    """
    _need_tensorflow("Training from a recipe")
    from keras_vit import training

    recipe, sources = _sources(recipe, train, validation)
    workdir = pathlib.Path(workdir or f"runs/{recipe.name}")
    _claim(workdir, recipe, sources[0].class_names)
    model = from_recipe(recipe)
    history = training.fit(model, recipe, *sources, workdir, verbose)
    if not (workdir / MODEL).exists():
        training.write(workdir / MODEL, lambda path: model.save(path, include_optimizer=False))
    return model, history


def load_run(workdir, file=MODEL):
    """Returns the model, the recipe and the class names of a finished run.

    Raises:
        FileNotFoundError: If the directory holds no run, or one that has not come to its end.
    """
    workdir = pathlib.Path(workdir)
    if not (workdir / RECIPE).exists():
        raise FileNotFoundError(f"{str(workdir)!r} holds no run: it has no {RECIPE}.")
    if not (workdir / file).exists():
        raise FileNotFoundError(f"The run in {str(workdir)!r} has no {file} yet: call fit again, and it goes on.")
    recipe = config.from_dict(json.loads((workdir / RECIPE).read_text()))
    return keras.models.load_model(workdir / file), recipe, (workdir / LABELS).read_text().splitlines()


def _sources(recipe, train, validation):
    """Returns the recipe and its two sources, read as it says or made of the caller's arrays."""
    from keras_vit.data import sources

    recipe = check(recipe) if isinstance(recipe, config.Recipe) else load_recipe(recipe)
    if (train is None) != (validation is None):
        raise ValueError("Arrays are given for both, `train` and `validation`, or for neither.")
    if train is None:
        return recipe, [sources.load(recipe.data, split) for split in (recipe.data.train, recipe.data.validation)]
    return recipe, [sources.from_arrays(*arrays, recipe.model.get("num_classes", 1000)) for arrays in (train, validation)]


def _image_shape(recipe):
    bound = inspect.signature(vit).bind(**recipe.model)
    bound.apply_defaults()
    return (*checks.pair("image_size", bound.arguments["image_size"]), bound.arguments["channels"])


def _claim(workdir, recipe, class_names):
    """Writes the recipe into the directory, or raises if another recipe's run is there."""
    text = json.dumps(config.to_dict(recipe), indent=2)
    file = workdir / RECIPE
    if file.exists() and (was := json.loads(file.read_text())) != (now := json.loads(text)):
        different = [f"{k}: {was.get(k)!r} there, {now.get(k)!r} here" for k in now if was.get(k) != now.get(k)]
        raise ValueError(
            f"{str(workdir)!r} holds the run of another recipe. Choose another directory, or remove that one. "
            f"Different: {'; '.join(different)}"
        )
    if not file.exists() and workdir.exists() and any(workdir.iterdir()):
        raise ValueError(f"{str(workdir)!r} is not empty and holds no run. Choose another directory.")
    workdir.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    (workdir / LABELS).write_text("\n".join(class_names) + "\n")


def _need_tensorflow(what):
    if importlib.util.find_spec("tensorflow") is None:
        raise ImportError(
            f"{what} needs TensorFlow, which is not installed: pip install tensorflow. "
            "On arrays, `model.fit(images, labels)` needs none."
        )
