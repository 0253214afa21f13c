"""Trains the model of a recipe on its data."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import keras

from keras_vit import config
from keras_vit.checkpoints.pretrained import DEFAULTS
from keras_vit.config.cookbook import from_recipe, load_recipe
from keras_vit.models import kinds
from keras_vit.models.inputs import metadata_of
from keras_vit.models.metadata import keep
from keras_vit.models.options import merged
from keras_vit.models.outputs import head_of_others
from keras_vit.training import devices, finetuning, own_callbacks, rundir, saving, splits
from keras_vit.utils import checks
from keras_vit.utils.warned import warn


def datasets(recipe: config.Recipe | str, *, train: Any = None, validation: Any = None) -> tuple:
    """Returns the training and the validation data of a recipe.

    Args:
        recipe: A `Recipe`, or a name.
        train: Data to use in place of the recipe's, as in `fit`.
        validation: The same for validation.

    Returns:
        Two `tf.data.Dataset`s of `(x, y)` as Keras's `fit` takes them; each pass over the first is one epoch, newly
        shuffled and augmented. For classification: images, and labels `(batch, classes)` whose rows sum to one.

    Raises:
        ValueError, FileNotFoundError: For data that is missing or does not fit the model.
    """
    devices.need_tensorflow("A data pipeline")
    from keras_vit.data import pipeline

    recipe, train, validation = on_data(read_recipe(recipe), train, validation)
    size = _image_shape(_arguments(recipe))
    return pipeline.training_batches(train, recipe, size), pipeline.evaluation_batches(validation, recipe, size)


def fit(
    recipe: config.Recipe | str,
    workdir: os.PathLike | str | None = None,
    *,
    train: Any = None,
    validation: Any = None,
    teacher: keras.Model | None = None,
    verbose: str | int = "auto",
    tensorboard: bool = False,
    save_steps: int | None = None,
    callbacks: Sequence[keras.callbacks.Callback] | keras.callbacks.Callback = (),
) -> tuple[keras.Model, dict[str, list[float]]]:
    """Trains the model of a recipe, or resumes the run in the directory.

    Sets the random seed of Python, NumPy and the backend to the recipe's.

    Args:
        recipe: A `Recipe`, or a name.
        workdir: Directory of the run; `runs/NAME` if `None`. It gets `recipe.json`, `data.json` (identifies the data),
            `labels.txt`, `machine.json` (where it last trained); after each epoch `history.csv`, `best.keras` and the
            training state `state-...`, which is also saved every ten minutes; at the end `model.keras`, the returned
            model, and `learner.keras` if the task shows more than that.
        train: Data to use in place of the recipe's: arrays in one tuple, such as `(images, labels)`; or a dataset of
            TensorFlow, Keras or Hugging Face, which is read into memory: `docs/training.md` says what it may contain.
        validation: The same for validation.
        teacher: Model to distill from, in place of `task.teacher`, where the recipe sets `task.distill`.
        verbose: `"auto"` for one progress line, updated in place on a terminal and elsewhere printed every ten seconds;
            `1` or `2` for Keras's bars or lines; `0` for nothing.
        tensorboard: Whether to write logs for TensorBoard into `workdir/tensorboard`.
        save_steps: Steps between training states within an epoch, in place of ten minutes.
        callbacks: Your own callbacks, or one, such as loggers. They see all columns of `history.csv`, and numbers that
            they add to an epoch's logs become columns. They start again without memory when the run is resumed.

    Returns:
        The model after the last epoch, or with `optim.patience` that of `best.keras`; and the history: a dictionary of
        lists with one value per epoch.

    Raises:
        ValueError, FileNotFoundError: For data that is missing or does not fit; for a directory that contains another
            recipe's run or a run on other data, or in which another process is training; for a callback that would
            contradict the run.
        TypeError: For anything but a Keras callback.
        RuntimeError: When the loss becomes NaN or infinite.
        OSError: When the training state cannot be written; the one before it is kept.
        KeyboardInterrupt: After Ctrl-C, SIGTERM or SIGHUP, once the training state is saved; the same call resumes.
    """
    devices.need_tensorflow("Training from a recipe")
    checks.one_of("verbose", verbose, ("auto", 0, 1, 2))
    checks.switch(tensorboard=tensorboard)
    if save_steps is not None:
        checks.positive(save_steps=save_steps)
    callbacks = own_callbacks.listed(callbacks)
    from keras_vit.data import deep_source, inspection, measuring
    from keras_vit.training.loop import Run, run_epochs

    requested = read_recipe(recipe)
    folder = checks.path("workdir", workdir or f"runs/{requested.name}")
    recipe, *sources = on_data(requested, train, validation)
    written = dataclasses.replace(recipe, task=requested.task)  # in the run's files the data name the classes
    names = recipe.task.classes
    identity = inspection.identity(*sources)
    measuring.tell(recipe, verbose)
    place = devices.start(recipe)
    extra = [own_callbacks.tensorboard(folder / "tensorboard")] if tensorboard and place.writes else []
    with place.scope(), inspection.named(*sources):
        model = from_recipe(recipe)
        if names and "head" not in recipe.model and head_of_others(model, names):
            model = from_recipe(recipe, {"model.head": "new"})
        finetuning.check(model, recipe.optim)
        deep_source.check_model(model, recipe.data)
        place.check(model)
        keep(model, labels=list(names), **deep_source.kept(sources[0], recipe.data))
        metadata = metadata_of(model)
        kinds.note(model, recipe.task.gives)
        teacher = recipe.task.teacher_for(model, place.moved(teacher))
        identity |= rundir.contents_of(teacher) | inspection.words_of(recipe.task, requested.task)
        metadata["run"] = rundir.mark(written, identity)
        run = Run(recipe, model, *sources, folder, teacher, place, mark=metadata["run"])
        with rundir.claimed(folder, written, identity, names, writes=place.writes):
            history = run_epochs(run, verbose, save_steps, [*callbacks, *extra])
            model = saving.save_final(run)
    return model, history


def read_recipe(recipe):
    """Returns a checked `Recipe`, loaded if `recipe` is a name."""
    return config.check_recipe(recipe) if isinstance(recipe, config.Recipe) else load_recipe(recipe)


def _image_shape(arguments):
    """Returns `(height, width, channels)` of the images that a model takes, by its arguments."""
    return (*checks.pair("image_size", arguments["image_size"]), arguments["channels"])


def on_data(recipe, train=None, validation=None):
    """Lets a recipe meet its data: returns it, settled and with the classes in its task, and a `Source` for each split.

    Data, task and model are checked against each other. Everything later reads `recipe.task`.
    """
    from keras_vit.data import cutting, sources

    if (train is None) != (validation is None):
        only = "train" if validation is None else "validation"
        raise ValueError(f"`train` and `validation` must be given together. Received: `{only}` alone")
    train, validation = sources_of(recipe, train, validation)
    arguments = _arguments(recipe)
    cut = recipe, recipe.task.data_shape(_image_shape(arguments))  # of large pictures, with `data.crops_per_image`
    seen, measured = (cutting.grid(source, *cut) for source in (train, validation))
    task = recipe.task.on(seen, arguments)
    other = recipe.task.on(measured, {**arguments, "num_classes": None})  # compared with `train` next
    sources.same_classes(task.classes, other.classes)
    splits.warn_of(task, recipe, train, validation)
    task.tally()  # names what is not defined or not installed
    train = cutting.crops(train, task, *cut)
    return dataclasses.replace(settled(recipe, train), task=task), task.read(train, True), task.read(measured)


def sources_of(recipe, train=None, validation=None):
    """Returns the training and validation sources of a recipe, or of the caller's data: one if `train` is alone."""
    from keras_vit.data import deep_source, sources
    from keras_vit.data.augment import keras_layers

    task = recipe.task
    arguments = _arguments(recipe)
    shape = task.data_shape(_image_shape(arguments))
    if train is None:
        pair = sources.both(recipe.data, task.targets, task.extras, task.columns, task.clips)
    else:
        pair = sources.given(train, validation, recipe, shape, lambda: task.classes_for(arguments))
    for source in pair:
        sources.check_channels(source, shape)
        deep_source.check_task(source, task)
    keras_layers.check_layers(recipe.augment.layers, pair[0].targets)
    return pair


def _arguments(recipe):
    """Returns the arguments of a recipe's model, defaults included; `num_classes` is `None` where the data say it."""
    return {**merged(DEFAULTS, recipe.model), "num_classes": recipe.model.get("num_classes")}


def settled(recipe, train):
    """Returns a recipe with what its training data say: the number of classes, and batches that are not larger."""
    from keras_vit.data import measuring, pipeline

    own = {f"model.{k}": v for k, v in recipe.task.settled(train).items() if recipe.model.get(k) is None}
    follows = own | measuring.settled(recipe, getattr(train, "pictures", train))
    if len(train) < recipe.data.batch_size:
        warn(f"A batch is all {len(train)} training images: data.batch_size is {recipe.data.batch_size}.")
        follows["data.batch_size"] = len(train)
    recipe = config.override(recipe, follows)
    pipeline.steps_per_epoch(train, recipe)
    return config.check_recipe(recipe)
