"""The rules of labels: what differs between one label for each image and several."""

import numpy as np


class Labels:
    """What a `Classify` does with the labels of its images. `OneLabel` and `SeveralLabels` are the two kinds.

    Args:
        task: The `Classify`, whose options the rules read.
    """

    targets: tuple[str, ...] = ()  # this, the next two and `columns` are those of the task
    best: tuple[str, str] = ("val_loss", "min")
    gives = "classes"
    losses: tuple[str, ...] = ()  # what `Classify.loss` may be
    said = ""  # why it may not be another one, a sentence

    def __init__(self, task):
        self.task = task

    @property
    def columns(self):
        """The columns of a table that have the labels, where `data.columns` does not say it."""
        return {}

    def check(self, recipe):
        """Raises ValueError if options of a recipe contradict each other; as `Task.check`."""
        raise NotImplementedError

    def check_data(self, source):
        """Raises ValueError if the labels of a source do not fit."""

    def warn_of(self, source):
        """Warns of what a source's labels cannot teach."""

    def of_model(self, model):
        """Returns a dictionary of the task's options that a trained model's file says."""
        return {}

    def forget(self, model):
        """Removes from a model's metadata what is said there of the labels of the weights that it begins with."""

    def compiled(self, source):
        """Returns the loss, of labels and logits `(batch, classes)`, and metrics; as `Task.compiled`."""
        raise NotImplementedError

    def batch(self, examples, augment, seed):
        """Returns images, `(batch, height, width, channels)`, and labels, `(batch, classes)`; as `Task.batch`."""
        raise NotImplementedError

    def callbacks(self, run):
        """Returns Keras callbacks; as `Task.callbacks`."""
        return []

    def finish(self, run):
        """Writes what is known after training into the model's metadata; as `Task.finish`."""

    def tally(self, keep=False):
        """Returns a new `Tally`; as `Task.tally`."""
        raise NotImplementedError

    def probabilities(self, outputs):
        """Returns the probabilities of the classes, float64, of logits of the same shape."""
        raise NotImplementedError

    def order(self, shares):
        """Returns the indices of the classes, `(classes,)`, the first in an answer first, by their probabilities."""
        return np.argsort(-shares, kind="stable")

    def thresholds_by_name(self):
        """Returns the probability from which on each class holds, by its name; none of one label an image."""
        return {}

    def caption(self, output, example):
        """Returns a line about one image, from its logits `(classes,)` and its targets; as `Task.caption`."""
        raise NotImplementedError
