"""A callback that computes a task's scores on validation images during training."""

import math

import keras
import numpy as np

from keras_vit.models.inputs import fed, image_shape


class Measured(keras.callbacks.Callback):
    """Adds scores of a tally on validation images to the logs, as `val_NAME`.

    They are computed every few epochs and after the last one. In between, the logs repeat the last values.

    Args:
        run: A `training.loop.Run`.
        make: Function that returns a new `Tally`.
        names: Names of the scores to log; NaN for a score that the tally does not return.
        every: Number of epochs between two measurements.
        most: Largest number of images to measure on; `None` for all.
    """

    def __init__(self, run, make, names, every=1, most=None):
        super().__init__()
        self.run = run
        self.make = make
        self.names = names
        self.every = every
        self.most = most

    def on_epoch_end(self, epoch, logs=None):
        """Adds the scores to the logs of an epoch, counted from 0."""
        columns = {name: f"val_{name}" for name in self.names}
        last = epoch + 1 == self.run.recipe.optim.epochs
        if not self.run.history or epoch % self.every == 0 or last:
            scores = self.measured().result()
            logs.update({column: scores.get(name, math.nan) for name, column in columns.items()})
        else:
            logs.update({column: self.run.history[-1].get(column, math.nan) for column in columns.values()})

    def measured(self):
        """Returns a new `Tally` after it has scored the validation images."""
        from keras_vit.data import pipeline

        count = len(self.run.validation)
        places = np.linspace(0, count - 1, min(self.most or count, count)).round().astype(int)  # may be sorted
        some, tally = self.run.validation.take(places), self.make()
        for examples in pipeline.evaluation_arrays(some, self.run.recipe, image_shape(self.run.model)):
            tally.add(examples, self.run.outputs(fed(examples, self.run.task.inputs)))
        return tally
