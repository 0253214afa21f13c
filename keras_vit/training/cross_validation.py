"""Cross-validation: a run for each fold of a recipe's training and validation data."""

import functools
import math
import os
from typing import Any

import numpy as np

from keras_vit import config
from keras_vit.training import devices, history, locks, rundir
from keras_vit.training.fit import fit, read_recipe, sources_of
from keras_vit.utils import checks, tables

FOLDS = "folds.csv"
SUMMARIES = {"mean": np.mean, "deviation": functools.partial(np.std, ddof=1)}


def cross_validate(
    recipe: config.Recipe | os.PathLike | str,
    folds: int = 5,
    workdir: os.PathLike | str | None = None,
    *,
    train: Any = None,
    validation: Any = None,
    verbose: str | int = "auto",
    save_steps: int | None = None,
) -> list[dict[str, Any]]:
    """Trains a recipe once for each fold, or resumes.

    The training and validation data are divided together, by scikit-learn: stratified by label for a classifier, by
    group where the data have groups. The test split stays apart. A fold depends on the data alone, not on the recipe's
    seed. Each fold is a run of its own with `data.fold=(number, folds)`; `fit` with that option trains the same.

    Args:
        recipe: A `Recipe`, or a name.
        folds: Number of folds, 2 or more.
        workdir: Directory of the runs, `fold-1`, `fold-2` and so on; `runs/NAME-FOLDS-folds` if `None`. It gets the
            table `folds.csv`.
        train: Arrays or a dataset to use in place of the recipe's data, as in `fit`.
        validation: The same for validation; `None` to divide `train` alone.
        verbose: As in `fit`.
        save_steps: As in `fit`.

    Returns:
        The rows of `folds.csv`: for each fold its number and its scores after the last epoch, the columns `val_...` of
        its `history.csv`; then a row each of the scores' `mean` and sample standard `deviation`.

    Raises:
        ValueError: For more folds than images, groups or images of a class; if another process cross-validates in the
            directory; and as `fit`. A fold that was trained on other data, or by another recipe, is refused before
            another one is trained.
    """
    devices.need_tensorflow("Cross-validation")
    from keras_vit.data import folds as dividing

    checks.positive(folds=folds)
    recipe = read_recipe(recipe)
    if recipe.data.fold:
        raise ValueError(f"A recipe for all folds must not be that of one. Received: data.fold={recipe.data.fold}")
    recipes = [config.check_recipe(config.override(recipe, {"data.fold": (i + 1, folds)})) for i in range(folds)]
    folder = checks.path("workdir", workdir or f"runs/{recipe.name}-{folds}-folds")
    if rundir.is_run(folder):
        raise ValueError(f"`workdir` must be for folds, not the directory of a run. Received: {str(folder)!r}")
    if train is None and validation is not None:
        raise ValueError("`validation` must be given with `train`. Received: `validation` alone")
    sources = sources_of(recipe, train, validation)
    whole = _together(sources)
    divided = dividing.divided(whole, folds, recipe.task.targets)
    rows = []
    with locks.locked(folder, devices.start(recipes[0]).writes):
        for one, (others, own) in zip(recipes, divided):
            number = one.data.fold[0]
            place = folder / f"fold-{number}"
            if number > 1 and train is None:
                _check_same(recipe, whole, number)
            finished = (place / rundir.MODEL).exists()
            if verbose and not finished:
                print(f"{place}: {len(others)} images to train on, {len(own)} for validation")
            data = {"train": whole.take(others), "validation": whole.take(own)}
            fit(one, place, **data, verbose=0 if finished else verbose, save_steps=save_steps)
            rows.append({"fold": number, **scores(place, one)})
        rows += [{"fold": name, **summary(rows, of)} for name, of in SUMMARIES.items()]
        tables.write(folder / FOLDS, rows)
    return rows


def _together(sources):
    """Returns one source of the training and the validation source, or of the one that is given."""
    from keras_vit.data import folds

    return folds.joined(*sources) if len(sources) > 1 else sources[0]


def _check_same(recipe, whole, number):
    """Raises ValueError if files of a folder changed since they were divided: the folds would be of other data."""
    if whole.files:
        now = _together(sources_of(recipe))
        if now.fingerprint() != whole.fingerprint() or not np.array_equal(now.digests, whole.digests):
            raise ValueError(
                f"{recipe.data.source!r} changed before fold {number} began: all folds must be of the same data. "
                "The same call trains the others once the files are as they were; else choose another directory."
            )


def scores(folder, recipe):
    """Returns the scores of a run's `model.keras`, the columns `val_...` of `history.csv`: in its last epoch, or with
    `optim.patience` in its best, the last of equal ones.
    """
    columns = history.read(folder)
    column, better = recipe.task.best
    sign = 1 if better == "max" else -1
    values = [sign * value for value in columns.get(column, ())]
    epochs = [i for i, value in enumerate(values) if math.isfinite(value + columns["val_loss"][i])]
    best = max(epochs, key=lambda i: (values[i], i), default=-1) if recipe.optim.patience else -1
    return {name: numbers[best] for name, numbers in columns.items() if name.startswith("val_")}


def summary(rows, function):
    """Returns what a function makes of the scores of all folds, by name: NaN where one is NaN or missing."""
    names = dict.fromkeys(name for row in rows for name in row if name != "fold")
    with np.errstate(invalid="ignore"):  # the deviation of an infinite loss is NaN
        return {name: float(function([row.get(name, math.nan) for row in rows])) for name in names}
