"""Commands that train: fit, tour."""

import pathlib
from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands.runs import draw, measure, write_exports
from keras_vit.commands.types import RECIPE, Changes, Count, Flag, Folder, Name, about

Digits = Annotated[Positional[str], about(f"{RECIPE} The default is digits.", "[RECIPE]")]


def train(
    recipe: Name,
    changes: Changes = (),
    *,
    workdir: Folder = None,
    tensorboard: Flag = False,
    save_steps: Count = None,
) -> None:
    """Train a recipe, or resume the run in the directory. Ctrl-C saves and leaves.

    Args:
        workdir: Directory of the run; runs/NAME by default.
        tensorboard: Write logs for TensorBoard too.
        save_steps: Steps between saved training states within an epoch; every ten minutes by default.
    """
    import numpy as np

    import keras_vit
    from keras_vit import config
    from keras_vit.utils.metrics import written

    loaded = keras_vit.load_recipe(recipe, config.parse(changes))
    workdir = workdir or pathlib.Path("runs", loaded.name)
    _, history = keras_vit.fit(loaded, workdir, tensorboard=tensorboard, save_steps=save_steps)
    (column, better), epochs = loaded.task.best, loaded.optim.epochs
    name, value = column.removeprefix("val_").replace("_", " "), written(column, history[column][-1])
    done = f"{count} epochs" if (count := len(history["loss"])) == epochs else f"{count} of {epochs} epochs"
    if loaded.optim.patience:
        best = (np.nanmax if better == "max" else np.nanmin)(history[column])
        value = f"{written(column, best)} at best, {value} in the last"
    print(f"{workdir}: {done}, validation {name} {value}")


def tour(recipe: Digits = "digits", changes: Changes = (), *, workdir: Folder = None) -> None:
    """Do all of it once: fit, export, explain, evaluate.

    Args:
        workdir: Directory of the run; runs/NAME by default.
    """
    from keras_vit import config
    from keras_vit.config import cookbook

    workdir = workdir or pathlib.Path("runs", cookbook.load_recipe(recipe, config.parse(changes)).name)
    train(recipe, changes, workdir=workdir)
    write_exports(str(workdir), overwrite=True)
    draw(str(workdir))
    measure(str(workdir))
