"""Keras's own training loop, with what a recipe says and a directory that remembers."""

import csv
import pathlib
import time
import warnings
import zipfile

import keras
import numpy as np

from keras_vit import files
from keras_vit.data import pipeline
from keras_vit.data.even import even_batches
from keras_vit.metrics import measure
from keras_vit.progress import Training, counted
from keras_vit.training import callbacks, finetuning, optimizers, state
from keras_vit.training.devices import ALONE
from keras_vit.training.distillation import Distiller
from keras_vit.training.losses import ClassLoss
from keras_vit.training.rundir import HISTORY

VISIBLE_SECONDS = 60  # in which a file is seen by all, on a directory of the network


def compile_model(model, recipe, steps, class_weights=None, jit_compile=True):
    """Compiles a model as a recipe says.

    Args:
        model: A Keras model with logits as output.
        recipe: A `Recipe`; its `optim` is read.
        steps: Batches an epoch.
        class_weights: As in `ClassLoss`.
        jit_compile: Whether XLA compiles it.

    Returns:
        The model, with its optimizer built.
    """
    optim = recipe.optim
    if optim.accumulate > optim.epochs * steps:
        raise ValueError(
            f"optim.accumulate is at most the {optim.epochs * steps} batches of the whole run. "
            f"Received: {optim.accumulate}"
        )
    if optim.warmup_epochs + optim.cooldown_epochs > optim.epochs:
        warnings.warn(
            f"The learning rate never comes to its peak: optim.warmup_epochs={optim.warmup_epochs} and "
            f"optim.cooldown_epochs={optim.cooldown_epochs} in optim.epochs={optim.epochs}.",
            stacklevel=2,
        )
    optimizer = optimizers.make(optim, model.trainable_variables, steps)
    loss = ClassLoss(optim.loss, optim.label_smoothing, class_weights)
    model.compile(optimizer, loss, weighted_metrics=["accuracy"], jit_compile=jit_compile)
    model.optimizer.build(model.trainable_variables)
    return model


def fit(
    model, recipe, train, validation, workdir, verbose="auto", *, teacher=None, place=ALONE, save_steps=None, extra=()
):
    """Trains a model, from where the directory's last run stopped.

    Args:
        model: A Keras model; see `compile_model`.
        recipe: A `Recipe`.
        train: A `Source` to train on.
        validation: A `Source` to measure on after each epoch.
        workdir: Directory; gets snapshots of the run's state, `best.keras` and `history.csv`.
        verbose: `"auto"` for one progress line for the whole run, `1` or `2` for Keras's bars or lines, an
            epoch each, `0` for nothing.
        teacher: Model to learn from, for a recipe that says `optim.distill`.
        place: Where it trains; the model was built in its scope, in which this is called too.
        save_steps: Steps between snapshots inside an epoch; `None` for every ten minutes.
        extra: More callbacks.

    Returns:
        The history: a dictionary from names to lists, one value an epoch, earlier runs in the directory included.

    Raises:
        RuntimeError: When the loss becomes NaN or infinite.
        OSError: When the state cannot be written.
        keras_vit.callbacks.Stopped: A `KeyboardInterrupt`, when asked to stop by Ctrl-C or a SIGTERM, after saving.
    """
    workdir, optim, size = pathlib.Path(workdir), recipe.optim, model.input_shape[1:]
    steps = pipeline.steps_per_epoch(train, recipe)
    prepare(model, optim)
    learner = model
    if optim.distill:
        learner = Distiller(model, teacher, optim.distill, optim.distill_weight, optim.temperature)
    compile_model(learner, recipe, steps, class_weights(train) if optim.class_weights else None, place.jit_compile)
    variables = state.named(model=model.variables, optimizer=learner.optimizer.variables)
    told = Training(optim.epochs, steps, recipe.data.batch_size) if verbose == "auto" and place.writes else None
    quiet = told or not place.writes
    progress = {"epoch": 0, "step": 0, "history": [], "best": -1.0}
    validation_batches = _validation_batches(validation, recipe, size, place)
    trained = False
    while True:
        metrics = _restore(workdir, variables, progress, place)
        if place.writes:
            callbacks.write_history(workdir, progress["history"])
        first, step = progress["epoch"], progress["step"]
        if first >= optim.epochs:
            break
        trained = True
        keep = callbacks.Keep(
            workdir,
            variables,
            progress,
            steps,
            save_best=lambda path: save_trained(learner, model, path, place.writes),
            metrics=metrics,
            save_steps=save_steps,
            place=place,
        )
        before = [callbacks.Average()] if optim.ema is not None else []
        before.append(callbacks.Pace(recipe.data.batch_size, steps, optim.epochs))
        if told:
            told.done = first * steps + step
            before.append(told)
        try:
            learner.fit(
                pipeline.training_batches(train, recipe, size, first_epoch=first, first_step=step, share=place.share),
                validation_data=validation_batches,
                initial_epoch=first,
                epochs=first + 1 if step else optim.epochs,  # the rest of an epoch by itself: it has fewer steps
                steps_per_epoch=steps - step,
                shuffle=False,  # the pipeline does
                callbacks=[*before, keep, *extra],
                verbose=0 if quiet else verbose,
            )
        except BaseException:
            if not quiet and verbose == 1:
                print()  # Keras's bar ends its line only where an epoch ends
            raise
        finally:
            keep.release()
            if told:
                told.line.end()
    if not trained and verbose and place.writes:
        print(
            f"{workdir}: already finished, all {optim.epochs} epochs. To train longer, start a new run from its "
            f"weights: model.weights={workdir} and another directory."
        )
    learner.optimizer.finalize_variable_values(model.trainable_variables)  # the moving average, if there is one
    return read_history(workdir)


def prepare(model, optim):
    """Freezes what a recipe freezes, adds low-rank updates, and sets the bias that the head starts from."""
    if optim.freeze is not None:
        finetuning.freeze(model, optim.freeze)
    if optim.lora is not None:
        finetuning.add_lora(model, optim.lora)
    if optim.head_bias is not None:
        for layer in model.layers:
            if layer.name in finetuning.HEADS:
                layer.bias.assign(keras.ops.full(layer.bias.shape, optim.head_bias))
    return model


def class_weights(source):
    """Returns a weight for each class, inverse to its share: an image's weight is 1 on average."""
    counts = np.bincount(source.labels, minlength=len(source.class_names))
    return len(source) / (len(counts) * np.maximum(counts, 1))


def _validation_batches(source, recipe, size, place):
    """Returns every image once; where devices share batches, all of them full, with weights."""

    def make(source, batch):
        return pipeline.evaluation_batches(source, recipe, size, batch)

    batch = recipe.data.batch_size
    return even_batches(make, source, batch, place.share) if place.even else make(source, batch)


def _restore(workdir, variables, progress, place):
    """Gives all variables the values of the newest snapshot, if there is one; returns those of the metrics."""
    found = _newest(workdir, place)
    if found is None:
        return {}
    arrays, notes, _ = found
    metrics = {name: array for name, array in arrays.items() if name.startswith("metrics/")}
    state.assign(variables, {name: array for name, array in arrays.items() if name not in metrics})
    progress.update(notes)
    return metrics


def _newest(workdir, place):
    """Returns the newest snapshot, or `None`: the same to all processes, which wait until they see the same."""
    for _ in range(VISIBLE_SECONDS):
        place.agree([0])  # the one that writes may not have done so
        found = state.newest(workdir)
        mark = int(found[2].stem.split("-")[2][:7], 16) if found else 0
        if place.agree([mark, -mark]) == [mark, -mark]:
            return found
        time.sleep(1)
    raise ValueError(
        f"The processes of a group share one directory. Received: {str(workdir)!r}, in which they see different states"
    )


def evaluate(model, recipe, source):
    """Measures a model on a source: a dictionary from the recipe's metrics to numbers; see `keras_vit.metrics`."""
    run = lambda images: keras.ops.convert_to_numpy(model.predict_on_batch(images))  # noqa: E731
    return measure(recipe.metrics, *outputs(run, recipe, source, model.input_shape[1:]))


def outputs(run, recipe, source, size):
    """Runs a function from pixels to logits over a source; returns all logits, and the class of each image."""
    batches = counted(pipeline.evaluation_arrays(source, recipe, size), len(source), "evaluating")
    logits, labels = zip(*((run(images), labels.argmax(-1)) for images, labels in batches))
    return np.concatenate(logits), np.concatenate(labels)


def save_trained(learner, model, path, writes=True):
    """Writes a model's `.keras` file without the optimizer, compressed; what was at `path` stays if that fails.

    Args:
        learner: What is fitted: the model, or what it learns in; its moving average of the weights is written.
        model: The model.
        path: Path that ends in `.keras`.
        writes: Whether this process writes it. Others only give what they hold of the weights.
    """
    with callbacks.averaged(learner):
        values = finetuning.merged_values(model)
    if not writes:
        return
    copy = finetuning.plain_copy(model, values)
    with files.replacing(path) as temporary:
        plain = temporary.with_name(f"{temporary.stem}-plain.keras")
        try:
            copy.save(plain)
            with zipfile.ZipFile(plain) as old, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as new:
                for name in old.namelist():
                    new.writestr(name, old.read(name))
        finally:
            plain.unlink(missing_ok=True)


def read_history(workdir):
    """Reads `history.csv`: a dictionary from names to lists, one value an epoch.

    Raises:
        ValueError: If it holds no epoch, or is damaged.
    """
    path = pathlib.Path(workdir) / HISTORY
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        return {name: [float(row[name]) for row in rows] for name in rows[0]}
    except IndexError:
        raise ValueError(f"{str(path)!r} holds no epoch.") from None
    except (TypeError, ValueError, csv.Error) as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}. `fit` writes it anew from the last state.") from None
