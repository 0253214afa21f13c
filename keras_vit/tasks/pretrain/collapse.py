"""Whether a teacher says the same of all images: the collapse of self-distillation."""

import math

import keras

from keras_vit.tasks.pretrain.crops_loss import ALONE, TOGETHER
from keras_vit.utils.warned import warn

LEAST = 0.02  # of what the teacher could say about which image it sees, below which it has collapsed
EARLY = 0.1  # of a run, in which nothing is said
EVEN = 0.9  # share of the largest entropy, above which outputs are called even


def collapsed(alone, together, prototypes, outputs):
    """Returns a sentence if a teacher has collapsed, else `""`.

    The entropy of the mean of outputs, minus the mean of their entropies, is what an output says about which image it
    is of. In both kinds of collapse it is 0: all outputs are even, or one prototype has everything. Caron et al. 2021
    (arXiv:2104.14294), section 5.3.

    Args:
        alone: Mean entropy of the outputs, in nats.
        together: Entropy of their mean.
        prototypes: Number of prototypes.
        outputs: Number of outputs in the mean.
    """
    if together - alone >= LEAST * math.log(min(prototypes, outputs)):
        return ""
    if alone > EVEN * math.log(prototypes):
        what, helps = "gives all prototypes the same share", "a lower task.teacher_temperature"
    else:
        what, helps = "gives the same prototypes to all images", "a larger batch, or a smaller optim.learning_rate"
    return (
        f"The teacher has collapsed, or has learned nothing yet: it {what}, of {prototypes}, so images are not told "
        f"apart. Its outputs have an entropy of {alone:.2f}, their mean one of {together:.2f}; {helps} may help."
    )


class SayCollapse(keras.callbacks.Callback):
    """Warns once when the teacher says the same of all validation images, at the end of an epoch.

    At first it always says nearly the same: a tenth of the run, and one epoch, must be over.

    Args:
        run: A `training.loop.Run`, whose learner is a `StudentTeacher`.
    """

    def __init__(self, run):
        super().__init__()
        self.run = run
        self.said = False

    def on_epoch_end(self, epoch, logs=None):
        """Looks at the entropies in the logs of an epoch, counted from 0."""
        if self.said or epoch + 1 <= max(EARLY * self.run.recipe.optim.epochs, 1):
            return
        outputs = 2 * min(self.run.recipe.data.batch_size, len(self.run.validation))
        text = collapsed(logs[f"val_{ALONE}"], logs[f"val_{TOGETHER}"], self.run.learner.prototypes, outputs)
        if text:
            self.said = True
            warn(f"{text} This is after epoch {epoch + 1}.")


class Planned(keras.callbacks.Callback):
    """Tells a `StudentTeacher` how long a run is.

    Args:
        run: A `training.loop.Run`.
    """

    def __init__(self, run):
        super().__init__()
        self.run = run

    def on_train_begin(self, logs=None):
        """Sets the learner's `plan`, by the steps of the run."""
        task, steps = self.run.task, self.run.steps
        epochs = (self.run.recipe.optim.epochs, task.temperature_epochs, task.frozen_epochs)
        self.model.plan.assign([round(each * steps) for each in epochs])
