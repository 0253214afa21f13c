"""The rules of labels: what differs between one label for each image and several."""

import numpy as np


class Labels:
    """Base class of the rules of labels in `Classify`: `OneLabel` and `SeveralLabels`.

    Args:
        task: The `Classify`, whose options the rules read.
    """

    targets: tuple[str, ...] = ()  # `targets`, `best`, `gives` and `columns` become the task's
    best: tuple[str, str] = ("val_loss", "min")
    gives = "classes"
    losses: tuple[str, ...] = ()  # allowed values of `Classify.loss`
    said = ""  # why no other loss is allowed, a sentence

    def __init__(self, task):
        self.task = task

    @property
    def columns(self):
        """The columns of a table with the labels, where `data.columns` does not name them."""
        return {}

    def check(self, recipe):
        """Raises ValueError if options of a recipe contradict each other; as `Task.check`."""
        raise NotImplementedError

    def check_data(self, source):
        """Raises ValueError if the labels of a `Source` do not match the task."""

    def warn_of(self, source):
        """Warns if the labels of a training `Source` do not suffice to learn some class."""

    def of_model(self, model):
        """Returns the task's options from a trained model's layers and metadata, a dictionary; as `Task.of_model`."""
        return {}

    def forget(self, model):
        """Removes settings of earlier labels, such as thresholds, from the metadata of a model with loaded weights."""

    def compiled(self, source):
        """Returns loss and metrics of labels and logits, both `(batch, classes)`; as `Task.compiled`."""
        raise NotImplementedError

    def batch(self, examples, augment, seed):
        """Returns float32 images, `(batch, height, width, channels)`, 0..255, and labels, `(batch, classes)`."""
        raise NotImplementedError

    def callbacks(self, run):
        """Returns Keras callbacks; as `Task.callbacks`."""
        return []

    def finish(self, run):
        """Writes results of training into the model's metadata; as `Task.finish`."""

    def tally(self, keep=False):
        """Returns a new `Tally`; as `Task.tally`."""
        raise NotImplementedError

    def probabilities(self, outputs):
        """Returns the probabilities of the classes, float64, 0..1, from logits of the same shape, `(..., classes)`."""
        raise NotImplementedError

    def order(self, shares):
        """Returns the class indices in the order of an answer, `(classes,)`, from their probabilities, `(classes,)`."""
        return np.argsort(-shares, kind="stable")

    def thresholds_by_name(self):
        """Returns the least probability at which each class holds, by name; empty with one label per image."""
        return {}

    def caption(self, output, example):
        """Returns a line about one image, from its logits, `(classes,)`, and its targets; as `Task.caption`."""
        raise NotImplementedError
