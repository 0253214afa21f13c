"""A run of a recipe: its data and its training."""

import importlib.util
import inspect
import pathlib

import keras

from keras_vit import checks, config
from keras_vit.cookbook import check, from_recipe, load_recipe
from keras_vit.pretrained import from_pretrained, vit
from keras_vit.training import devices, finetuning, rundir


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
    need_tensorflow("A data pipeline")
    from keras_vit.data import pipeline

    recipe, size, (train, validation) = _sources(recipe, train, validation)
    return pipeline.training_batches(train, recipe, size), pipeline.evaluation_batches(validation, recipe, size)


def fit(
    recipe,
    workdir=None,
    *,
    train=None,
    validation=None,
    teacher=None,
    verbose="auto",
    tensorboard=False,
    save_steps=None,
):
    """Trains the model of a recipe, or goes on where the run in the directory stopped.

    Sets the random seed of Python, NumPy and the backend to the recipe's.

    Args:
        recipe: A `Recipe`, or a name.
        workdir: Directory of the run; `runs/NAME` if `None`. Gets `recipe.json`, `data.json` (what tells the data from
            any other), `labels.txt`, `machine.json` (what it was trained on last); `history.csv`, `best.keras` and a
            snapshot of the whole state, `state-...`, after each epoch; snapshots every ten minutes too; and
            `model.keras` (the last epoch) at the end.
        train: `(images, labels)` arrays to use in place of the recipe's data.
        validation: Likewise.
        teacher: Model to learn from, in place of the one that the recipe names, where it says `optim.distill`.
        verbose: `"auto"` for one progress line for the whole run, updated in place on a terminal and printed once an
            epoch, or at most every ten seconds, elsewhere; `1` or `2` for Keras's bars or lines, an epoch each; `0` for
            nothing.
        tensorboard: Whether to write logs for TensorBoard into `workdir/tensorboard`.
        save_steps: Steps between snapshots inside an epoch, in place of ten minutes.

    Returns:
        The model, with the weights of the last epoch, and the history: a dictionary of lists, one value an epoch.

    Raises:
        ValueError, FileNotFoundError: For data that is not there or does not fit, or a directory that holds
            another recipe's run, or a run on other data, or that another process is training in.
        RuntimeError: When the loss becomes NaN or infinite.
        OSError: When the state cannot be written; the one before it is as it was.
        KeyboardInterrupt: After Ctrl-C or a SIGTERM; the state was saved, and the same call goes on from there.
    """
    need_tensorflow("Training from a recipe")
    checks.one_of("verbose", verbose, ("auto", 0, 1, 2))
    if save_steps is not None:
        checks.positive(save_steps=save_steps)
    from keras_vit.data import inspection
    from keras_vit.training import loop

    recipe, _, sources = _sources(recipe, train, validation)
    workdir = pathlib.Path(workdir or f"runs/{recipe.name}")
    data = {"arrays": train is not None, "train": sources[0].fingerprint(), "validation": sources[1].fingerprint()}
    data |= inspection.contents(train=sources[0], validation=sources[1])
    place = devices.start(recipe)
    extra = [_tensorboard(workdir)] if tensorboard and place.writes else []
    with place.scope(), inspection.named(*sources):
        model = from_recipe(recipe)
        if model.output_shape != (None, len(sources[0].class_names)):
            raise ValueError(f"A model of one vector of logits is trained. Received: output shape {model.output_shape}")
        teacher = _teacher(recipe, teacher, model, place)
        finetuning.check(model, recipe.optim.freeze, recipe.optim.lora)
        model.get_layer("rescale").metadata["labels"] = list(sources[0].class_names)
        with rundir.claimed(workdir, recipe, data, sources[0].class_names, writes=place.writes):
            history = loop.fit(
                model,
                recipe,
                *sources,
                workdir,
                verbose,
                teacher=teacher,
                place=place,
                save_steps=save_steps,
                extra=extra,
            )
            missing = place.writes and not (workdir / rundir.MODEL).exists()
            if place.agree([int(missing)]) == [1]:
                loop.save_trained(model, model, workdir / rundir.MODEL, place.writes)
            if place.processes > 1:  # theirs is spread over them, and a part cannot predict
                model = finetuning.plain_copy(model, finetuning.merged_values(model))
    return model, history


def _sources(recipe, train, validation):
    """Returns the recipe, its image shape, and two sources that fit it: the recipe's own, or the caller's arrays."""
    from keras_vit.data import pipeline, sources

    recipe = check(recipe) if isinstance(recipe, config.Recipe) else load_recipe(recipe)
    bound = inspect.signature(vit).bind(**recipe.model)
    bound.apply_defaults()
    shape = (*checks.pair("image_size", bound.arguments["image_size"]), bound.arguments["channels"])
    num_classes = bound.arguments["num_classes"]
    if (train is None) != (validation is None):
        only = "train" if validation is None else "validation"
        raise ValueError(f"Arrays are given for both, `train` and `validation`, or for neither. Received: `{only}`")
    if train is None:
        splits = (recipe.data.train, recipe.data.validation)
        found = [sources.check(sources.load(recipe.data, split), shape, num_classes) for split in splits]
        sources.same_classes(*(source.class_names for source in found))
    else:
        found = [sources.from_arrays(*pair_of(arrays), shape, num_classes) for arrays in (train, validation)]
    pipeline.steps_per_epoch(found[0], recipe)
    return recipe, shape, found


def _teacher(recipe, given, model, place):
    """Returns the model that a recipe learns from, or `None`."""
    if not recipe.optim.distill:
        if given is not None or recipe.optim.teacher is not None:
            raise ValueError("A teacher is for optim.distill, 'soft' or 'hard'. Received: optim.distill=None")
        return None
    if given is None and recipe.optim.teacher is None:
        raise ValueError("optim.distill needs a teacher: optim.teacher, or the argument `teacher`.")
    if given is not None and place.even:  # it was built on one device
        given, weights = keras.models.clone_model(given), given.get_weights()
        given.set_weights(weights)
    if given is not None:
        return given
    if recipe.optim.teacher.endswith(".keras"):
        return keras.models.load_model(recipe.optim.teacher)
    return from_pretrained(recipe.optim.teacher, image_size=tuple(model.input_shape[1:3]))


def _tensorboard(workdir):
    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError("The logs need TensorBoard, which is not installed: pip install tensorboard.")
    return keras.callbacks.TensorBoard(str(workdir / "tensorboard"), write_graph=False)


def pair_of(arrays):
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 2:
        raise ValueError(f"Arrays are given as a pair, (images, labels). Received: {type(arrays).__name__}")
    return arrays


def need_tensorflow(what):
    try:
        importlib.import_module("tensorflow")
    except ImportError:
        raise ImportError(
            f"{what} needs TensorFlow, which is not installed: pip install tensorflow. "
            "On arrays, `model.fit(images, labels)` needs none."
        ) from None
    devices.leave_devices_to_jax()
