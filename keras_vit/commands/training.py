"""Commands that train: fit, sweep, tour."""

import pathlib
import shlex
from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands import scores
from keras_vit.commands.runs import draw, measure, say, write_exports
from keras_vit.commands.types import RECIPE, Changes, Count, Flag, Folder, Name, about

Digits = Annotated[Positional[str], about(f"{RECIPE} The default is digits.", "[RECIPE]")]

OPTIONS = "Options and their values: model.depth=6,8 or, with --draw, optim.learning_rate=1e-5..1e-3."
Options = Annotated[Positional[tuple[str, ...]], about(OPTIONS, "[NAME=VALUE,VALUE ...]")]


def train(
    recipe: Name,
    changes: Changes = (),
    *,
    workdir: Folder = None,
    tensorboard: Flag = False,
    save_steps: Count = None,
    folds: Count = None,
) -> None:
    """Train a recipe, or resume the run in the directory. Ctrl-C saves and leaves.

    Args:
        workdir: Directory of the run; runs/NAME by default.
        tensorboard: Write logs for TensorBoard too.
        save_steps: Steps between saved training states within an epoch; every ten minutes by default.
        folds: Train this many times, once for each fold of the training and validation data together.
    """
    say(f"Reading {recipe} and its data")  # the next line takes seconds
    import numpy as np

    import keras_vit
    from keras_vit import config
    from keras_vit.utils import tables
    from keras_vit.utils.metrics import told, written

    loaded = keras_vit.load_recipe(recipe, config.parse(changes))
    if folds is not None:
        if tensorboard:
            raise ValueError("Folds write no logs for TensorBoard. Received: --folds and --tensorboard")
        rows = keras_vit.cross_validate(loaded, folds, workdir, save_steps=save_steps)
        print("\n".join([tables.text(rows), *scores.units(rows, loaded.task)]))
        return
    workdir = workdir or pathlib.Path("runs", loaded.name)
    _, history = keras_vit.fit(loaded, workdir, tensorboard=tensorboard, save_steps=save_steps)
    (column, better), epochs = loaded.task.best, loaded.optim.epochs
    last, title = written(column, history[column][-1]), loaded.task.titled(column.removeprefix("val_"))
    score = f"validation {told(title, last)}"
    extent = f"{count} epochs" if (count := len(history["loss"])) == epochs else f"{count} of {epochs} epochs"
    if loaded.optim.patience:
        best = (np.nanmax if better == "max" else np.nanmin)(history[column])
        score = f"validation {told(title, written(column, best))} at best, {last} in the last"
    print(f"{workdir}: {extent}, {score}")


def sweep(
    recipe: Name, options: Options, *, draw: Count = None, workdir: Folder = None, save_steps: Count = None
) -> None:
    """Train a recipe with each combination of some options, or with random draws, and compare.

    Args:
        draw: Number of runs whose options are drawn at random; all combinations by default.
        workdir: Directory of the runs; runs/NAME-sweep by default.
        save_steps: Steps between saved training states within an epoch; every ten minutes by default.
    """
    import keras_vit
    from keras_vit.config import choices
    from keras_vit.utils import tables

    values_by_option = choices.read(options)
    rows = keras_vit.sweep(recipe, values_by_option, draw, workdir, save_steps=save_steps)
    same = {name for name in values_by_option if name not in choices.varied(values_by_option)}
    table = tables.text([{k: v for k, v in row.items() if k not in same} for row in rows])
    print("\n".join([table, *scores.units(rows, keras_vit.load_recipe(recipe).task)]))
    words = [f"{name}={rows[0][name]}" for name in values_by_option]
    print(f"best: {shlex.join(['python', '-m', 'keras_vit', 'fit', recipe, *words, '--workdir', rows[0]['run']])}")


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
