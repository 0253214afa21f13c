"""Recipes by name: list them, load one, build its model."""

import hashlib
import os
import re
import runpy
import traceback

import keras

from keras_vit import config
from keras_vit.checkpoints import load_weights
from keras_vit.config import misplaced, removed
from keras_vit.models import remat
from keras_vit.models.inputs import image_shape, metadata_of
from keras_vit.models.options import flat
from keras_vit.models.outputs import labels_beside
from keras_vit.utils import checks
from keras_vit.utils.files import folder
from keras_vit.utils.keras_private import shapes_only

# Arguments that may differ from the trained model: they leave the function unchanged, or the weights are adapted.
_HARMLESS = ("dtype", "name", "dropout", "block.attention_dropout", "stochastic_depth")
_ADAPTED = ("image_size", "channels", "num_classes", "patch_size")


def list_recipes() -> list[str]:
    """Returns the names of the recipes that come with the package."""
    return sorted(path.stem for path in folder("recipes").glob("*.py"))


def recipe_path(name):
    """Returns the file of a recipe of the package, or the path of a recipe file.

    Raises:
        ValueError: For an unknown name, or a path that is no Python file.
        FileNotFoundError: For a path that does not exist.
    """
    path = checks.path("recipe", name)
    if path.suffix == ".py" and path.is_file():
        return path
    if str(name) not in list_recipes():
        instead = misplaced.instead_of_recipe(str(name), list_recipes(), load_recipe)
        if instead or path.exists():
            hint = f" Did you mean {instead}?" if instead else ""
            raise ValueError(f"A recipe must be a name or a Python file.{hint} Received: {str(name)!r}")
        if path.suffix == ".py" or path.name != str(name):
            raise FileNotFoundError(f"There is no file {str(name)!r}.")
        raise ValueError(f"There is no recipe {str(name)!r}. {checks.near(name, list_recipes())}")
    return folder("recipes") / f"{name}.py"


def load_recipe(name: os.PathLike | str, changes: dict | None = None) -> config.Recipe:
    """Loads a recipe.

    Args:
        name: Name of a recipe (see `list_recipes`), or path of a Python file that defines `recipe`. The file is run:
            load only files that you trust.
        changes: Dictionary from dotted names to values, such as `{"optim.epochs": 3}`.

    Returns:
        A `keras_vit.config.Recipe`.

    Raises:
        ValueError: For an unknown recipe or option, a value outside its range, or a file that does not run.
        FileNotFoundError: For a path that does not exist.
        TypeError: For a value of the wrong type.
    """
    path = recipe_path(name)
    try:
        recipe = runpy.run_path(str(path)).get("recipe")
    except Exception as error:
        where = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f", line {where[-1]}" if where else ""  # the message of a SyntaxError has its line
        advice = f". {instead}" if isinstance(error, TypeError) and (instead := removed.meant(str(error))) else ""
        raise ValueError(f"{str(path)!r}{place}: {type(error).__name__}: {error}{advice}") from error
    if not isinstance(recipe, config.Recipe):
        raise ValueError(f"{str(path)!r} must define `recipe`, a keras_vit.Recipe. Received: {checks.shown(recipe)}")
    return config.check_recipe(config.override(recipe, {} if changes is None else changes))


def model_shapes(recipe):
    """Returns the model of a recipe without memory for its weights, for its shapes.

    It has no head if the number of classes depends on the data.
    """
    arguments = {"num_classes": 0, **config.check_recipe(recipe).model}
    if arguments.get("variant") is None and "patch_size" not in arguments:
        return recipe.task.model(**arguments)  # the weights determine its sizes
    arguments.pop("weights", None)
    return shapes_only(lambda: recipe.task.model(**arguments))


def from_recipe(
    name: config.Recipe | os.PathLike | str, changes: dict | None = None, *, pretrained: bool = False
) -> keras.Model:
    """Builds the model of a recipe. Sets the random seed of Python, NumPy and the backend to the recipe's.

    Args:
        name: As in `load_recipe`, or a `Recipe`.
        changes: As in `load_recipe`.
        pretrained: Whether to load the trained weights that ship with the package. They are adapted to another
            `image_size`, `channels`, `patch_size` or `num_classes` (a new head); see `load_weights`.

    Returns:
        A Keras model from images, `(batch, height, width, channels)`, 0..255, or the task's other inputs, to the task's
        outputs, `(batch, ...)`; see `keras_vit.vit`.

    Raises:
        ValueError: As in `load_recipe`; if the recipe has no trained weights, or their file is damaged.
    """
    changes = {} if changes is None else changes
    recipe = config.override(name, changes) if isinstance(name, config.Recipe) else load_recipe(name, changes)
    arguments = dict(config.check_recipe(recipe).model)
    arguments.setdefault("name", re.sub(r"[^\w.-]+", "_", recipe.name))  # Keras allows no slash
    arguments.setdefault("channels", 3)  # `weights` may have another number
    path = weights_path(recipe, _ADAPTED) if pretrained else None
    if path:
        arguments.pop("weights", None)
    keras.utils.set_random_seed(recipe.seed)
    with remat.scope(recipe.optim):
        model = recipe.task.model(**arguments)
    if path:
        count = len(recipe.task.classes) or recipe.model.get("num_classes")
        head = "new" if count and count != len(labels_beside(path) or ()) else "require"
        pooled = "pool" in {layer.name for layer in model.layers}  # a single encoder: its weights can be adapted
        load_weights(model, path, **({"head": head, "patches": "resize"} if pooled else {}))
        metadata_of(model)["source"] = path.name
    if not recipe.task.of_texts:
        metadata_of(model)["evaluation"] = _evaluation(recipe.data, min(image_shape(model)[-3:-1]))
    return model


def _evaluation(data, side):
    """Returns the settings by which evaluation resizes images, a dictionary for `keras_vit.preprocess`."""
    kind = {int: "crop", tuple: "squash", type(None): "direct"}.get(type(data.resize), data.resize)
    share = side / (min(data.resize) if kind == "squash" else data.resize) if kind in ("crop", "squash") else None
    return {
        "resize": kind,
        "crop_pct": share,
        "crop_offset": data.crop_offset,
        "interpolation": data.method,
        "antialias": data.antialias,
    }


def weights_path(recipe, adapted=()):
    """Returns the file of a recipe's shipped weights, after a check of its hash and of the model.

    Args:
        recipe: A `Recipe`.
        adapted: Names of model arguments that may differ from the trained model.
    """
    if recipe.weights is None:
        raise ValueError(
            f"The recipe {recipe.name!r} has no trained weights with the package. Train it: fit {recipe.name}"
        )
    path = folder("saved_models") / recipe.weights.file
    trained, own = (flat(each.model) for each in (load_recipe(path.stem), recipe))
    other = [k for k in {**trained, **own} if trained.get(k) != own.get(k) and k not in (*_HARMLESS, *adapted)]
    if other:
        raise ValueError(f"The trained weights {path.name!r} do not fit this model. Different: {', '.join(other)}.")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != recipe.weights.sha256:
        raise ValueError(f"{str(path)!r} is damaged: its SHA-256 must be {recipe.weights.sha256}. Received: {digest}")
    return path
