"""A small run that the tests of `training` share."""

import keras
import numpy as np

from keras_vit import config, vit
from keras_vit.data.sources import Source
from keras_vit.training.devices import Place
from keras_vit.training.loop import Run, run_epochs

RNG = np.random.default_rng(0)
SOURCE = Source(
    RNG.integers(0, 256, (40, 8, 8, 1)).astype("uint8"),
    {"labels": RNG.integers(0, 3, 40).astype("int32")},
    tuple("abc"),
)
RECIPE = config.Recipe(
    name="x",
    model={},
    task=config.Classify(classes=tuple("abc")),
    data=config.Data(batch_size=8),
    augment=config.Augment(rotation=10.0, translation=0.1, mixup=0.2),
    optim=config.Optim(epochs=3, warmup_epochs=1.0, learning_rate=0.01, weight_decay=0.1, ema=0.9),
)
PLAIN = Place(jit_compile=False)  # compiling takes longer than these trainings, and so does tracing


def tiny(**more):
    keras.utils.set_random_seed(0)
    return vit("mu/4", image_size=8, channels=1, num_classes=3, depth=1, **more)


def fit(folder, recipe=RECIPE, model=None, place=PLAIN, **more):
    import tensorflow as tf

    folder.mkdir(exist_ok=True)
    model = tiny(stochastic_depth=0.3, dropout=0.1) if model is None else model
    tf.config.run_functions_eagerly(not place.jit_compile)
    try:
        return model, run_epochs(Run(recipe, model, SOURCE, SOURCE, folder, place=place), 0, **more)
    finally:
        tf.config.run_functions_eagerly(False)


def what_counts(history):
    return {k: v for k, v in history.items() if k not in ("images_per_second", "minutes_left")}


class Break(keras.callbacks.Callback):
    """Raises after so many batches."""

    def __init__(self, after):
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            raise SystemError
