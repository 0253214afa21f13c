"""A sweep: a run for each of several settings of a recipe, and a table of their scores."""

import gc
import math
import os
from typing import Any

from keras_vit import config
from keras_vit.config import choices
from keras_vit.training import devices, locks, rundir
from keras_vit.training.cross_validation import scores
from keras_vit.training.fit import fit, read_recipe
from keras_vit.utils import checks, tables
from keras_vit.utils.warned import warn

SWEEP = "sweep.csv"
SOURCES = ("data.source", "data.train", "data.validation", "data.limit")  # which `train` and `validation` replace


def sweep(
    recipe: config.Recipe | os.PathLike | str,
    options: dict[str, Any],
    draw: int | None = None,
    workdir: os.PathLike | str | None = None,
    *,
    train: Any = None,
    validation: Any = None,
    verbose: str | int = "auto",
    save_steps: int | None = None,
) -> list[dict[str, Any]]:
    """Trains a recipe with each combination of some options, or with random draws of them, or resumes.

    Each run has a directory of its own, whose name says its options. Finished runs are not trained again. A run that
    fails, such as by a loss that becomes NaN, is a row of the table with its error; the others are trained. The next
    call tries it again.

    Args:
        recipe: A `Recipe`, or a name.
        options: Dictionary from dotted names to lists of values; or to text, values between commas, or a range such as
            `"1e-5..1e-3"`, which needs `draw`. Between whole numbers, whole numbers are drawn; between others above 0,
            log-uniform ones with three digits; from 0 or below, uniform ones. One value alone is the same in all runs.
        draw: Number of runs whose options are drawn at random. A larger number adds to the same draws. `None` for all
            combinations.
        workdir: Directory of the runs; `runs/NAME-sweep` if `None`. It gets the table `sweep.csv`.
        train: As in `fit`.
        validation: As in `fit`.
        verbose: As in `fit`.
        save_steps: As in `fit`.

    Returns:
        The rows of `sweep.csv`, the best run first, by the column that `best.keras` follows: the options; the scores
        after the last epoch, or with `optim.patience` after the best, the columns `val_...` of `history.csv`; `error`,
        if there was one; and `run`.

    Raises:
        ValueError, TypeError: Before the first run, for options or values that the recipe does not have; for nothing
            that varies; for data that `train` replaces; if another process is sweeping in the directory. After all, if
            none was finished. When another process trains one of the runs.
        OSError: When a run cannot be written.
    """
    recipe = read_recipe(recipe)
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise TypeError(
            f"`options` must be a dictionary, such as {{'model.depth': [6, 8]}}. Received: {checks.shown(options):.200}"
        )
    if draw is not None:
        checks.positive(draw=draw)
    unread = [name for name in options if name in SOURCES and train is not None]
    if unread:
        raise ValueError(f"With `train`, no run reads {', '.join(SOURCES)}. Received: options for {unread[0]!r}")
    options = {name: choices.choices(name, value) for name, value in options.items()}
    runs = choices.combinations(options, draw)
    recipes = [config.check_recipe(config.override(recipe, changes)) for changes in runs]
    folder = checks.path("workdir", workdir or f"runs/{recipe.name}-sweep")
    if rundir.is_run(folder):
        raise ValueError(f"`workdir` must be for runs, not the directory of one. Received: {str(folder)!r}")
    given = {"train": train, "validation": validation, "save_steps": save_steps}
    rows, varied, data = [], choices.varied(options), {}
    with locks.locked(folder, devices.start(recipes[0]).writes):
        for number, (changes, one) in enumerate(zip(runs, recipes), 1):
            place = folder / choices.label(changes, varied)
            done = (place / rundir.MODEL).exists()
            if verbose and not done:
                print(f"run {number} of {len(runs)}: {place}")
            try:
                fit(one, place, **given, verbose=0 if done else verbose)
                outcome = scores(place, one)
                _warn_of_other_data(data, changes, place)
            except Exception as error:
                if not fails_alone(error):
                    raise
                outcome = {"error": (str(error).splitlines() or [type(error).__name__])[0]}
                if verbose:
                    print(f"{place}: {outcome['error']}")
            rows.append({**changes, **outcome, "run": str(place)})
            gc.collect()  # of the model, before the next one is built
        rows = ranked(rows, recipe.task.best)
        tables.write(folder / SWEEP, rows)
    if all("error" in row for row in rows):
        raise ValueError(f"No run of the sweep was finished. The first error: {rows[0]['error']}")
    return rows


def _warn_of_other_data(seen, changes, place):
    """Warns if a run was trained on other data than one before it, though its options do not say so.

    Args:
        seen: Dictionary from the options that change data to what identifies those of a run, and its directory; it
            grows.
        changes: Options of the run.
        place: Its directory.
    """
    own = rundir.read_json(place / rundir.DATA)
    options = repr({name: value for name, value in changes.items() if name.partition(".")[0] in ("data", "task")})
    known, other = seen.setdefault(options, (own, place))
    if known != own:
        warn(
            f"{str(place)!r} was trained on other data than {str(other)!r}: files changed, or a dataset gives other "
            "examples whenever it is read. Their scores cannot be compared."
        )


def fails_alone(error):
    """Returns whether an error may be of one run's options: a NaN, too little memory, options that do not fit.

    A file that is missing is an option's if this package says so; the system's own errors have a number. A run that
    another process is training has not failed: without it, the best of the table would be that of some.
    """
    kinds = (ValueError, RuntimeError, MemoryError)
    missing = isinstance(error, FileNotFoundError) and error.errno is None
    if isinstance(error, locks.BusyError):
        return False
    return missing or isinstance(error, kinds) or type(error).__module__.startswith("tensorflow")


def ranked(rows, best):
    """Returns rows sorted by a column, `(name, "max" or "min")`, the best first; those without a score last."""
    name, better = best
    sign = -1 if better == "max" else 1

    def place(row):
        value = row.get(name, math.nan)
        return (not math.isfinite(value), sign * value if math.isfinite(value) else 0)

    return sorted(rows, key=place)
