"""A task's scores on validation images, while a model is trained."""

import math

import keras
import numpy as np

from keras_vit.models.inputs import fed, image_shape


class Measured(keras.callbacks.Callback):
    """Adds scores of a tally on validation images to the logs, as `val_NAME`.

    They are computed every few epochs and after the last; in between the last values are repeated.

    Args:
        run: A `training.loop.Run`.
        make: Function that returns a new tally.
        names: Of the scores; NaN where the tally does not give them.
        every: Epochs between two measurements.
        most: Images of each measurement; `None` for all.
    """

    def __init__(self, run, make, names, every=1, most=None):
        super().__init__()
        self.run = run
        self.make = make
        self.names = names
        self.every = every
        self.most = most

    def on_epoch_end(self, epoch, logs=None):
        columns = {name: f"val_{name}" for name in self.names}
        last = epoch + 1 == self.run.recipe.optim.epochs
        if not self.run.history or epoch % self.every == 0 or last:
            scores = self.measured().result()
            logs.update({column: scores.get(name, math.nan) for name, column in columns.items()})
        else:
            logs.update({column: self.run.history[-1].get(column, math.nan) for column in columns.values()})

    def measured(self):
        """Returns a new tally of the validation images."""
        from keras_vit.data import pipeline

        count = len(self.run.validation)
        places = np.linspace(0, count - 1, min(self.most or count, count)).round().astype(int)  # they may be sorted
        some, tally = self.run.validation.take(places), self.make()
        for examples in pipeline.evaluation_arrays(some, self.run.recipe, image_shape(self.run.model)):
            tally.add(examples, self.run.outputs(fed(examples, self.run.task.inputs)))
        return tally
