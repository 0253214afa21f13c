"""A training run, as the parts of `training/` hand it to each other."""

import dataclasses
import pathlib

import keras

from keras_vit.config import Recipe
from keras_vit.data import pipeline
from keras_vit.data.even import even_batches
from keras_vit.data.memory import Source
from keras_vit.training.devices import ALONE, Place


@dataclasses.dataclass
class Run:
    """What is trained, on which data, where, and how far it is.

    Args:
        recipe: A `Recipe`.
        model: The model that is trained and saved.
        train: `Source` to train on.
        validation: `Source` to measure on after each epoch.
        folder: Directory of the run.
        teacher: Model to distill from, for `optim.distill`.
        place: Devices and processes that train.
        epoch: Epochs done.
        step: Steps done in the epoch after them.
        best: Highest validation accuracy so far.
        history: One row (a dictionary) per epoch done.
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
    best: float = -1.0
    history: list[dict] = dataclasses.field(default_factory=list)

    @property
    def steps(self):
        """Steps per epoch."""
        return pipeline.steps_per_epoch(self.train, self.recipe)

    def training_batches(self):
        """Returns the batches of the rest of the run, augmented: this process's share of each."""
        done = {"first_epoch": self.epoch, "first_step": self.step, "share": self.place.share}
        return pipeline.training_batches(self.train, self.recipe, self.model.input_shape[1:], **done)

    def validation_batches(self):
        """Returns every validation image once; where devices share batches, all of them full, with weights."""

        def make(source, batch):
            return pipeline.evaluation_batches(source, self.recipe, self.model.input_shape[1:], batch)

        batch, place = self.recipe.data.batch_size, self.place
        return even_batches(make, self.validation, batch, place.share) if place.even else make(self.validation, batch)

    @property
    def progress(self):
        """What the training state on disk says of the run's progress."""
        return {"epoch": self.epoch, "step": self.step, "history": self.history, "best": self.best}
