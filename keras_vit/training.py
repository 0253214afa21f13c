"""Keras's own training loop, with what a recipe says and a directory that remembers."""

import csv
import pathlib
import zipfile

import keras
import numpy as np

from keras_vit import callbacks, files, finetuning, optimizers, snapshots
from keras_vit.data import pipeline
from keras_vit.distillation import Distiller
from keras_vit.distribution import ALONE
from keras_vit.losses import ClassLoss
from keras_vit.rundir import HISTORY


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
    optimizer = optimizers.make(optim, model.trainable_variables, steps)
    loss = ClassLoss(optim.loss, optim.label_smoothing, class_weights)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=jit_compile)
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
        verbose: As in `keras.Model.fit`.
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
    variables = snapshots.named(model=model.variables, optimizer=learner.optimizer.variables)
    progress = {"epoch": 0, "step": 0, "history": [], "best": -1.0}
    validation_batches = pipeline.evaluation_batches(validation, recipe, size)
    while True:
        metrics = _restore(workdir, variables, progress)
        if place.writes:
            callbacks.write_history(workdir, progress["history"])
        first, step = progress["epoch"], progress["step"]
        if first >= optim.epochs:
            break
        keep = callbacks.Keep(
            workdir,
            variables,
            progress,
            steps,
            save_best=lambda path: save_trained(learner, model, path),
            metrics=metrics,
            save_steps=save_steps,
            writes=place.writes,
        )
        averages = [callbacks.Average()] if optim.ema is not None else []
        try:
            learner.fit(
                pipeline.training_batches(train, recipe, size, first_epoch=first, first_step=step, share=place.share),
                validation_data=validation_batches,
                initial_epoch=first,
                epochs=first + 1 if step else optim.epochs,  # the rest of an epoch by itself: it has fewer steps
                steps_per_epoch=steps - step,
                shuffle=False,  # the pipeline does
                callbacks=[*averages, callbacks.Pace(steps * recipe.data.batch_size, optim.epochs), keep, *extra],
                verbose=verbose,
            )
        finally:
            keep.release()
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


def class_weights(source):
    """Returns a weight for each class, inverse to its share: an image's weight is 1 on average."""
    counts = np.bincount(source.labels, minlength=len(source.class_names))
    return len(source) / (len(counts) * np.maximum(counts, 1))


def _restore(workdir, variables, progress):
    """Gives all variables the values of the newest snapshot, if there is one; returns those of the metrics."""
    found = snapshots.newest(workdir)
    if found is None:
        return {}
    arrays, notes, _ = found
    metrics = {name: array for name, array in arrays.items() if name.startswith("metrics/")}
    snapshots.assign(variables, {name: array for name, array in arrays.items() if name not in metrics})
    progress.update(notes)
    return metrics


def evaluate(model, recipe, source):
    """Returns the top-1 accuracy of a model on a source, from 0 to 1."""
    run = lambda images: keras.ops.convert_to_numpy(model.predict_on_batch(images))  # noqa: E731
    return accuracy(run, recipe, source, model.input_shape[1:])


def accuracy(run, recipe, source, size):
    """Returns the top-1 accuracy of a function from pixels to logits, from 0 to 1."""
    batches = pipeline.evaluation_batches(source, recipe, size).as_numpy_iterator()
    right = sum(int((run(images).argmax(-1) == labels.argmax(-1)).sum()) for images, labels in batches)
    return right / len(source)


def save_trained(learner, model, path):
    """Writes a model's `.keras` file without the optimizer, compressed; what was at `path` stays if that fails.

    Args:
        learner: What is fitted: the model, or what it learns in; its moving average of the weights is written.
        model: The model.
        path: Path that ends in `.keras`.
    """
    with callbacks.averaged(learner):
        copy = finetuning.merge_lora(model)
    with files.replacing(path) as temporary:
        plain = temporary.with_name(f"plain-{temporary.name}")
        try:
            copy.save(plain)
            with zipfile.ZipFile(plain) as old, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as new:
                for name in old.namelist():
                    new.writestr(name, old.read(name))
        finally:
            plain.unlink(missing_ok=True)


def read_history(workdir):
    """Reads `history.csv`: a dictionary from names to lists, one value an epoch."""
    with open(pathlib.Path(workdir) / HISTORY, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}
