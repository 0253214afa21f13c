"""How a finished run is trained further: by a new run from its weights."""

import shlex

from keras_vit.config.changes import words
from keras_vit.config.cookbook import list_recipes, load_recipe


def longer(folder, recipe):
    """Returns the sentence with the command that does it.

    Args:
        folder: Directory of the finished run.
        recipe: The `Recipe` that was asked for. What it changes in a recipe of the package is in the command too.
    """
    known = recipe.name in list_recipes()
    own = {"optim.epochs": recipe.optim.epochs, "model.weights": folder}
    same = [word for word in words(recipe, load_recipe(recipe.name)) if word.split("=")[0] not in own] if known else []
    said = [recipe.name if known else "RECIPE.py", *same, *(f"{name}={value}" for name, value in own.items())]
    said += ["--workdir", f"{folder}-longer"]
    return (
        "To train longer, start a new run from its weights, with a schedule of its own: "
        f"python -m keras_vit fit {shlex.join(said)}"
    )
