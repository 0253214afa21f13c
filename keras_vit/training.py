"""Keras's own training loop, with what a recipe says and a directory that remembers."""

import csv
import os
import pathlib
import zipfile

import keras
import numpy as np

from keras_vit.data import pipeline
from keras_vit.rundir import LAST

BEST, HISTORY = "best.keras", "history.csv"


def compile_model(model, recipe, steps):
    """Compiles a model as a recipe says: AdamW, decay on kernels only, warm-up and cosine, XLA.

    Args:
        model: A Keras model with logits as output.
        recipe: A `Recipe`; its `optim` is read.
        steps: Steps an epoch.

    Returns:
        The model.
    """
    optim = recipe.optim
    warmup = round(optim.warmup_epochs * steps)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0 if warmup else optim.learning_rate,
        decay_steps=max(optim.epochs * steps - warmup, 1),
        warmup_target=optim.learning_rate if warmup else None,
        warmup_steps=warmup,
    )
    optimizer = keras.optimizers.AdamW(schedule, weight_decay=optim.weight_decay, global_clipnorm=optim.clip_norm)
    optimizer.exclude_from_weight_decay([v for v in model.trainable_variables if not v.path.endswith("kernel")])
    optimizer.build(model.trainable_variables)
    loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=optim.label_smoothing)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=True)
    return model


def fit(model, recipe, train, validation, workdir, verbose="auto"):
    """Trains a model, from where the directory's last run stopped.

    Args:
        model: A Keras model; see `compile_model`.
        recipe: A `Recipe`.
        train: A `Source` to train on.
        validation: A `Source` to measure on after each epoch.
        workdir: Directory; gets `last.keras` and `best.keras` (with the optimizer's state), and `history.csv`.
        verbose: As in `keras.Model.fit`.

    Returns:
        The history: a dictionary from names to lists, one value an epoch, earlier runs in the directory included.

    Raises:
        RuntimeError: When the loss becomes NaN or infinite.
    """
    workdir, size = pathlib.Path(workdir), model.input_shape[1:]
    steps = pipeline.steps_per_epoch(train, recipe)
    compile_model(model, recipe, steps)
    if (workdir / LAST).exists():
        model.load_weights(workdir / LAST)
    first_epoch = int(model.optimizer.iterations) // steps
    if first_epoch < recipe.optim.epochs:
        model.fit(
            pipeline.training_batches(train, recipe, size, first_epoch=first_epoch),
            validation_data=pipeline.evaluation_batches(validation, recipe, size),
            initial_epoch=first_epoch,
            epochs=recipe.optim.epochs,
            steps_per_epoch=steps,
            shuffle=False,  # the pipeline does
            callbacks=[
                keras.callbacks.TerminateOnNaN(raise_error=True),
                _Draws(steps),
                keras.callbacks.CSVLogger(str(workdir / HISTORY), append=True),
                _Keep(workdir),
            ],
            verbose=verbose,
        )
    return read_history(workdir)


def evaluate(model, recipe, source):
    """Returns the top-1 accuracy of a model on a source, from 0 to 1."""
    run = lambda images: keras.ops.convert_to_numpy(model.predict_on_batch(images))  # noqa: E731
    return accuracy(run, recipe, source, model.input_shape[1:])


def accuracy(run, recipe, source, size):
    """Returns the top-1 accuracy of a function from pixels to logits, from 0 to 1."""
    batches = pipeline.evaluation_batches(source, recipe, size).as_numpy_iterator()
    right = sum(int((run(images).argmax(-1) == labels.argmax(-1)).sum()) for images, labels in batches)
    return right / len(source)


def save_trained(model, path):
    """Writes a `.keras` file without the optimizer, compressed; what was at `path` stays if that fails."""
    copy = type(model).from_config(model.get_config())  # never compiled
    copy.set_weights(model.get_weights())

    def save(temporary):
        plain = temporary.with_name(f"plain-{temporary.name}")
        try:
            copy.save(plain)
            with zipfile.ZipFile(plain) as old, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as new:
                for name in old.namelist():
                    new.writestr(name, old.read(name))
        finally:
            plain.unlink(missing_ok=True)

    write(path, save)


def read_history(workdir):
    """Reads `history.csv`: a dictionary from names to lists, one value an epoch."""
    with open(pathlib.Path(workdir) / HISTORY, newline="") as file:
        by_epoch = {
            int(row["epoch"]): row for row in csv.DictReader(file)
        }  # a resumed epoch stands twice: the later row
    rows = [by_epoch[epoch] for epoch in sorted(by_epoch)]
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def write(path, save):
    """Calls `save(temporary_path)` and renames its result to `path`: a failed write leaves what was there."""
    path = pathlib.Path(path)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        save(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class _Draws(keras.callbacks.Callback):
    """Sets the random states of dropout and stochastic depth at each epoch, so that a resumed run draws the same."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def on_epoch_begin(self, epoch, logs=None):
        for variable in self.model.variables:
            if variable.path.endswith("seed_generator_state"):
                seed = keras.ops.convert_to_numpy(variable)[0]
                variable.assign(np.array([seed, epoch * self.steps], "uint32"))


class _Keep(keras.callbacks.Callback):
    """Saves the last and the best epoch, each by writing beside it and renaming."""

    def __init__(self, workdir):
        super().__init__()
        self.workdir = workdir
        self.best = max(read_history(workdir)["val_accuracy"], default=-1) if (workdir / BEST).exists() else -1

    def on_epoch_end(self, epoch, logs=None):
        write(self.workdir / LAST, self.model.save)
        if logs["val_accuracy"] >= self.best:
            self.best = logs["val_accuracy"]
            write(self.workdir / BEST, self.model.save)
