"""How fast a training is."""

import time

import keras

from keras_vit.training.ema import optimizer_of


class Pace(keras.callbacks.Callback):
    """Adds the learning rate, images per second and minutes left to each epoch's logs.

    Args:
        run: A `Run`.
    """

    def __init__(self, run):
        super().__init__()
        self.images = run.recipe.data.batch_size
        self.steps = run.steps
        self.epochs = run.recipe.optim.epochs

    def on_epoch_begin(self, epoch, logs=None):
        self.begun = time.monotonic()
        self.trained = None
        self.count = 0

    def on_train_batch_end(self, batch, logs=None):
        self.trained = time.monotonic()
        self.count += 1

    def on_epoch_end(self, epoch, logs=None):
        whole = (time.monotonic() - self.begun) * self.steps / self.count  # a resumed epoch has fewer steps
        logs["learning_rate"] = learning_rate(self.model)
        logs["images_per_second"] = self.images * self.count / (self.trained - self.begun)
        logs["minutes_left"] = (self.epochs - epoch - 1) * whole / 60


def learning_rate(model):
    """Returns the learning rate of the next step."""
    return float(keras.ops.convert_to_numpy(optimizer_of(model).learning_rate))
