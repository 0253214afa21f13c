"""Trains the model of a recipe on its data."""

import importlib.util
import os
import warnings
from collections.abc import Sequence

import keras

from keras_vit import config
from keras_vit.config.cookbook import arguments_of_model, from_recipe, load_recipe
from keras_vit.models.outputs import head_of_others
from keras_vit.training import devices, finetuning, growing, rundir, saving
from keras_vit.utils import checks

REFUSED = {  # callbacks of Keras that would contradict a run, and what does their work
    "BackupAndRestore": "the run's own training state does it",
    "LearningRateScheduler": "the recipe has the schedule: optim.schedule",
    "ReduceLROnPlateau": "the recipe has the schedule: optim.schedule",
    "SwapEMAWeights": "optim.ema does it",
}


def datasets(recipe: config.Recipe | str, *, train: tuple | None = None, validation: tuple | None = None) -> tuple:
    """Returns the training and the validation data of a recipe.

    Each pass over the training data is one epoch, newly shuffled and augmented.

    Args:
        recipe: A `Recipe`, or a name.
        train: Arrays to use in place of the recipe's data: images and, in one tuple, the task's targets, such as
            `(images, labels)`.
        validation: Likewise.

    Returns:
        Two `tf.data.Dataset`s of `(x, y)` as Keras's `fit` takes them. For classification: images, and labels
        `(batch, classes)` whose rows sum to one.

    Raises:
        ValueError, FileNotFoundError: For data that is missing or does not fit the model.
    """
    devices.need_tensorflow("A data pipeline")
    from keras_vit.data import pipeline

    recipe = read_recipe(recipe)
    train, validation = sources_of(recipe, train, validation)
    recipe, size = settled(recipe, train), image_shape(recipe)
    return pipeline.training_batches(train, recipe, size), pipeline.evaluation_batches(validation, recipe, size)


def fit(
    recipe: config.Recipe | str,
    workdir: os.PathLike | str | None = None,
    *,
    train: tuple | None = None,
    validation: tuple | None = None,
    teacher: keras.Model | None = None,
    verbose: str | int = "auto",
    tensorboard: bool = False,
    save_steps: int | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> tuple[keras.Model, dict[str, list[float]]]:
    """Trains the model of a recipe, or resumes the run in the directory.

    Sets the random seed of Python, NumPy and the backend to the recipe's.

    Args:
        recipe: A `Recipe`, or a name.
        workdir: Directory of the run; `runs/NAME` if `None`. It gets `recipe.json`, `data.json` (identifies the data),
            `labels.txt`, `machine.json` (where it last trained); after each epoch `history.csv`, `best.keras` and the
            training state `state-...`, which is also saved every ten minutes; at the end `model.keras`, the model after
            the last epoch, and `learner.keras` if the task shows more than that.
        train: Arrays to use in place of the recipe's data: images and, in one tuple, the task's targets, such as
            `(images, labels)`.
        validation: Likewise.
        teacher: Model to distill from, in place of `task.teacher`, where the recipe sets `task.distill`.
        verbose: `"auto"` for one progress line, updated in place on a terminal and elsewhere printed every ten seconds;
            `1` or `2` for Keras's bars or lines; `0` for nothing.
        tensorboard: Whether to write logs for TensorBoard into `workdir/tensorboard`.
        save_steps: Steps between training states within an epoch, in place of ten minutes.
        callbacks: Callbacks of your own, such as `keras.callbacks.EarlyStopping("val_loss", patience=5)`. They see the
            logs that `history.csv` gets. What they remember begins anew when the run is resumed.

    Returns:
        The model after the last epoch, and the history: a dictionary of lists with one value per epoch.

    Raises:
        ValueError, FileNotFoundError: For data that is missing or does not fit; for a directory that contains another
            recipe's run or a run on other data, or in which another process is training; for a callback that would
            contradict the run.
        TypeError: For anything but a Keras callback.
        RuntimeError: When the loss becomes NaN or infinite.
        OSError: When the training state cannot be written; the one before it is kept.
        KeyboardInterrupt: After Ctrl-C or SIGTERM, once the training state is saved; the same call resumes.
    """
    devices.need_tensorflow("Training from a recipe")
    checks.one_of("verbose", verbose, ("auto", 0, 1, 2))
    checks.switch(tensorboard=tensorboard)
    if save_steps is not None:
        checks.positive(save_steps=save_steps)
    _check_callbacks(callbacks)
    from keras_vit.data import inspection
    from keras_vit.training.loop import Run, run_epochs

    recipe = read_recipe(recipe)
    folder = checks.path("workdir", workdir or f"runs/{recipe.name}")
    sources = sources_of(recipe, train, validation)
    recipe = settled(recipe, sources[0])
    identity = inspection.identity(*sources, arrays=train is not None)
    names = recipe.task.on(sources[0]).classes
    recipe.task.tally()  # raises if the task does not define it
    place = devices.start(recipe)
    extra = [_tensorboard(folder)] if tensorboard and place.writes else []
    with place.scope(), inspection.named(*sources):
        model = from_recipe(recipe)
        if "head" not in recipe.model and head_of_others(model, names):
            model = from_recipe(recipe, {"model.head": "new"})
        finetuning.check(model, recipe.optim)
        place.check(model)
        model.get_layer("rescale").metadata["labels"] = list(names)
        run = Run(recipe, model, *sources, folder, recipe.task.teacher_for(model, place.moved(teacher)), place)
        growing.check(recipe, model, run.teacher)
        identity |= rundir.contents_of(run.teacher)
        run.mark = model.get_layer("rescale").metadata["run"] = rundir.mark(recipe, identity)
        with rundir.claimed(folder, recipe, identity, names, writes=place.writes):
            history = run_epochs(run, verbose, save_steps, [*callbacks, *extra])
            model = saving.save_final(run)
    return model, history


def read_recipe(recipe):
    """Returns a checked `Recipe`, loaded if `recipe` is a name."""
    return config.check_recipe(recipe) if isinstance(recipe, config.Recipe) else load_recipe(recipe)


def image_shape(recipe):
    """Returns `(height, width, channels)` of the images that a recipe's model takes."""
    arguments = arguments_of_model(recipe)
    return (*checks.pair("image_size", arguments["image_size"]), arguments["channels"])


def sources_of(recipe, train=None, validation=None):
    """Returns the training and validation sources of a recipe, or of the caller's arrays, checked against its model."""
    from keras_vit.data import sources
    from keras_vit.data.augment import keras_layers

    arguments = {**arguments_of_model(recipe), "num_classes": recipe.model.get("num_classes")}
    task = recipe.task
    shape = task.data_shape(image_shape(recipe))
    if (train is None) != (validation is None):
        only = "train" if validation is None else "validation"
        raise ValueError(f"`train` and `validation` must be given together. Received: `{only}` alone")
    if train is None:
        splits = (recipe.data.train, recipe.data.validation)
        found = [sources.load(recipe.data, split, task.targets, task.extras) for split in splits]
        sources.same_classes(*(task.on(source).classes for source in found))
    else:
        names, wanted = task.names(arguments), (None, None, shape[2]) if task.whole else shape
        found = [sources.from_arrays(arrays, task.targets, wanted, names) for arrays in (train, validation)]
    for source in found:
        sources.check_channels(source, shape)
        task.on(source, arguments)
    keras_layers.check_layers(recipe.augment.layers, found[0].targets)
    return found


def settled(recipe, train):
    """Returns a recipe with what its training data say: the number of classes, and batches that are not larger."""
    from keras_vit.data import pipeline

    follows = {f"model.{k}": v for k, v in recipe.task.settled(train).items() if recipe.model.get(k) is None}
    if len(train) < recipe.data.batch_size:
        warnings.warn(
            f"A batch is all {len(train)} training images: data.batch_size is {recipe.data.batch_size}.", stacklevel=3
        )
        follows["data.batch_size"] = len(train)
    recipe = config.override(recipe, follows)
    pipeline.steps_per_epoch(train, recipe)
    return config.check_recipe(recipe)


def _check_callbacks(callbacks):
    """Raises an error for what is no callback, or one that would contradict a run."""
    for callback in callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]:
        if not isinstance(callback, keras.callbacks.Callback):
            raise TypeError(f"`callbacks` must be a list of keras.callbacks.Callback. Received: {callback!r:.200}")
        kind = type(callback).__name__
        if kind in REFUSED and isinstance(callback, getattr(keras.callbacks, kind)):
            raise ValueError(f"A run takes no {kind}: {REFUSED[kind]}. Received: callbacks with {callback!r}")
        if getattr(callback, "restore_best_weights", False):
            raise ValueError(
                f"A run keeps the best model in best.keras. Received: callbacks with {kind}(restore_best_weights=True)"
            )


def _tensorboard(workdir):
    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError("`tensorboard=True` needs TensorBoard, which is not installed: pip install tensorboard.")
    return keras.callbacks.TensorBoard(str(workdir / "tensorboard"), write_graph=False)
