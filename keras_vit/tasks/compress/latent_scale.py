"""The mean and the deviation of the latents, measured while an autoencoder trains, and kept in its file."""

import math

import keras
import numpy as np

from keras_vit.models.inputs import image_shape, metadata_of
from keras_vit.models.whole_autoencoder import SCALE, encoder_of, scale_of
from keras_vit.tasks.compress.learner import LOG_VARIANCE

IMAGES = 512  # of the validation split, at most


class LatentScale(keras.callbacks.Callback):
    """Measures the scale of the latents after each epoch, and logs `val_latent_std`.

    Args:
        run: A `training.loop.Run`.
    """

    def __init__(self, run):
        super().__init__()
        self.run = run

    def on_epoch_end(self, epoch, logs=None):
        """Adds the standard deviation of the unscaled latents to the logs of an epoch."""
        logs["val_latent_std"] = 1 / measured(self.run)["scaling_factor"]


def measured(run, again=True):
    """Returns `scaling_factor` and `shift_factor` of a run's latents, and writes them into the model's metadata.

    They are for latents as they are drawn: the variance is that of the means plus the mean of the variances (Rombach et
    al. 2022, arXiv:2112.10752, appendix G: a rescaling to deviation 1, from one batch there).

    Args:
        run: A `training.loop.Run` of an autoencoder.
        again: Whether to measure if the metadata have them.
    """
    from keras_vit.data import pipeline

    if not again and scale_of(run.model):
        return scale_of(run.model)
    encoder, count = encoder_of(run.model), len(run.validation)
    places = np.linspace(0, count - 1, min(IMAGES, count)).round().astype(int)  # may be sorted
    means, variances = [], []
    for examples in pipeline.evaluation_arrays(run.validation.take(places), run.recipe, image_shape(run.model)):
        mean, log = np.split(np.asarray(run.outputs(examples["images"], encoder), "float64"), 2, axis=-1)
        means.append(mean)
        variances.append(np.exp(np.clip(log, *LOG_VARIANCE)))
    means, variances = np.concatenate(means), np.concatenate(variances)
    spread = math.sqrt(max(means.var() + variances.mean(), 1e-12))
    scale = {"scaling_factor": 1 / spread, "shift_factor": float(means.mean())}
    metadata_of(run.model)[SCALE] = scale
    return scale
