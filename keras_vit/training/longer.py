"""How a finished run is trained further: by a new run from its weights."""

import shlex

from keras_vit.config.changes import parse, words
from keras_vit.config.cookbook import list_recipes, load_recipe


def longer(folder, recipe, arrays=False):
    """Returns the sentence with the command that does it, or the call in Python.

    Args:
        folder: Directory of the finished run.
        recipe: The `Recipe` that was asked for. What it changes in a recipe of the package is in the command too.
        arrays: Whether the data are the caller's, which no command can name.
    """
    shipped = recipe.name in list_recipes()
    own = {"optim.epochs": recipe.optim.epochs, "model.weights": folder}
    same = (
        [word for word in words(recipe, load_recipe(recipe.name)) if word.split("=")[0] not in own] if shipped else []
    )
    arguments = [
        recipe.name if shipped else "RECIPE.py",
        *same,
        *(f"{name}={value}" for name, value in own.items()),
    ]
    if arrays:
        python = f"keras_vit.load_recipe({arguments[0]!r}, {parse(arguments[1:])})"
        command = f"keras_vit.fit({python}, {f'{folder}-longer'!r}, train=..., validation=...)"
    else:
        command = f"python -m keras_vit fit {shlex.join([*arguments, '--workdir', f'{folder}-longer'])}"
    note = "" if shipped else ", where RECIPE.py is your recipe's file; add your other changes again"
    return f"To train longer, start a new run from its weights, with a schedule of its own: {command}{note}"
