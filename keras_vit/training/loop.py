"""A training run, and Keras's training loop on it: saved and resumed at any step."""

import dataclasses
import functools
import pathlib

import keras

from keras_vit.config import Recipe
from keras_vit.data import pipeline
from keras_vit.data.even import even_batches
from keras_vit.data.memory import Source
from keras_vit.models.inputs import image_shape
from keras_vit.training import ema, history, progress, rundir, stopping
from keras_vit.training.compiling import compile_run
from keras_vit.training.devices import ALONE, Place
from keras_vit.training.keep import KeepBest, KeepState
from keras_vit.training.longer import longer
from keras_vit.training.own_callbacks import OwnCallbacks
from keras_vit.training.pace import Pace
from keras_vit.utils import feeding


@dataclasses.dataclass
class Run:
    """One training run: recipe, model, data, devices and progress.

    Args:
        recipe: A `Recipe`, whose task has the classes of the data.
        model: The model that is trained and saved.
        train: `Source` to train on.
        validation: `Source` to measure on after each epoch.
        folder: Directory of the run.
        teacher: Model to distill from, if the task has one.
        place: Devices and processes that train.
        epoch: Epochs done.
        step: Steps done in the epoch after them.
        best: Best value so far of the column that the task follows, `None` before the first epoch.
        history: One row (a dictionary) per epoch done.
        learner: What is fitted: the model, or the task's learner around it.
        mark: Hash of recipe and data, which its training states and models carry.
        ended: Whether a callback set `stop_training`, such as early stopping by `optim.patience`.
    """

    recipe: Recipe
    model: keras.Model
    train: Source
    validation: Source
    folder: pathlib.Path
    teacher: keras.Model | None = None
    place: Place = ALONE
    epoch: int = 0
    step: int = 0
    best: float | None = None
    history: list[dict] = dataclasses.field(default_factory=list)
    learner: keras.Model | None = None
    mark: str = ""
    ended: bool = False

    @property
    def task(self):
        """The recipe's task."""
        return self.recipe.task

    @functools.cached_property
    def steps(self):
        """Steps per epoch."""
        return pipeline.steps_per_epoch(self.train, self.recipe)

    def own_variables(self):
        """Returns the variables of the learner that are neither the model's nor the teacher's, such as a decoder's."""
        others = {id(v) for model in (self.model, self.teacher) if model is not None for v in model.variables}
        return [v for v in self.learner.variables if id(v) not in others]

    def training_batches(self):
        """Returns the augmented batches of the rest of the run: this process's share of each."""
        done = {"first_epoch": self.epoch, "first_step": self.step, "share": self.place.share}
        return pipeline.training_batches(self.train, self.recipe, image_shape(self.model), **done)

    def validation_batches(self):
        """Returns the validation batches. Each image counts once; on several devices the last batches are padded."""

        def make(source, batch):
            return pipeline.evaluation_batches(source, self.recipe, image_shape(self.model), batch)

        batch, place = self.recipe.data.batch_size, self.place
        return even_batches(make, self.validation, batch, place.share) if place.even else make(self.validation, batch)

    def outputs(self, inputs, part=None):
        """Returns outputs of the model, or of a part of it, as an array, by the EMA weights if any; for callbacks."""
        with ema.averaged(self.learner):
            return stopping.finite(self, feeding.run(part or self.task.answering(self.model), inputs))

    @property
    def progress(self):
        """The part of the run's progress that is saved in the training state."""
        return {"epoch": self.epoch, "step": self.step, "history": self.history, "best": self.best, "ended": self.ended}


def run_epochs(run, verbose="auto", save_steps=None, extra=()):
    """Trains a run to its last epoch, from the newest training state in its directory.

    Args:
        run: A `Run`. Build its model, and call this, in the scope of `run.place`. The directory gets training states,
            `best.keras` and `history.csv`.
        verbose: `"auto"` for one progress line, `1` or `2` for Keras's bars or lines, `0` for nothing.
        save_steps: Steps between training states within an epoch; `None` for every ten minutes.
        extra: More callbacks, before those that save.

    Returns:
        The history: a dictionary from names to lists with one value per epoch, epochs of earlier calls included.

    Raises:
        RuntimeError: When the loss becomes NaN or infinite.
        OSError: When the training state cannot be written.
        keras_vit.training.stopping.Stopped: A `KeyboardInterrupt`, once the state is saved after Ctrl-C, SIGTERM or
            SIGHUP.
    """
    epochs = run.recipe.optim.epochs
    learner = run.learner = compile_run(run)
    validation = run.validation_batches()
    keep = KeepState(run, learner, save_steps)
    keep.restore()
    if (run.ended or run.epoch >= epochs) and verbose and run.place.writes:
        extent = f"stopped after {run.epoch} of {epochs}" if run.epoch < epochs else f"all {epochs}"
        further = longer(run.folder, rundir.recipe_of(run.folder), run.train.given)
        print(f"{run.folder}: already finished, {extent} epochs. {further}")
    with stopping.signals() as received, progress.shown(run, verbose) as (bars, keras_verbose):
        stop, own = stopping.StopOnSignal(run, keep, received), OwnCallbacks(extra)
        callbacks = [  # in this order: EMA weights in place, logs complete, nothing saved that diverged
            ema.EvaluateWithEMA(),
            Pace(run),
            *run.task.callbacks(run),
            own,
            *bars,
            stopping.StopOnNaN(run),
            KeepBest(run, learner),
            keep,
            stop,
        ]
        while run.epoch < epochs and not run.ended:
            learner.fit(
                run.training_batches(),
                validation_data=validation,
                initial_epoch=run.epoch,
                epochs=run.epoch + 1 if run.step else epochs,  # a resumed epoch is shorter: a `fit` of its own
                steps_per_epoch=run.steps - run.step,
                shuffle=False,  # the pipeline shuffles
                callbacks=callbacks,
                verbose=keras_verbose,
            )
            keep.restore()  # `fit` leaves the EMA weights in the model: back to the trained ones
        own.on_run_end()
        stop.on_run_end()
    # The returned model has the EMA weights, if there are any.
    learner.optimizer.finalize_variable_values(learner.trainable_variables)
    return history.read(run.folder)
