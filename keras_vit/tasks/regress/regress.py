"""Regression: one or more numbers for each image."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import keras
import numpy as np

from keras_vit.layers.functional import Model
from keras_vit.models.metadata import stated_labels
from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.regress.number_loss import NumberLoss
from keras_vit.tasks.regress.number_tally import NumberTally
from keras_vit.utils.metrics import measured

UNITS = "numbers"  # the layer that multiplies by the deviation and adds the mean
FINE = 0.01  # largest step of float32 between two numbers, as a share of the standard deviation


@dataclass(frozen=True, repr=False)
class Regress(Task):
    """One or more numbers for each image, such as an age or a count.

    The model returns `(batch, numbers)`, float32, in the units of the data: its last layer multiplies by the standard
    deviation of the training data and adds the mean. The loss measures errors in standard deviations. Grades and other
    ordered classes can be learned as numbers too.

    Args:
        names: Names of the numbers: columns of a table, or of an array, `(images, numbers)`.
        loss: `"l2"`, `"l1"` or `"huber"`; see `NumberLoss`.
        mean: Mean of each number; by default the mean of the training data.
        deviation: Standard deviation of each number; by default the standard deviation of the training data.
    """

    any_range = True
    targets = ("numbers",)
    best = ("val_mae", "min")
    gives = "numbers"
    refuses = {
        "task.classes": "Regress has no classes.",
        **refusals.each(refusals.MIXES, "Numbers are not blended with the images."),
    }

    names: tuple[str, ...] = ("number",)
    loss: Literal["l2", "l1", "huber"] = "l2"
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    @property
    def columns(self):
        return {"numbers": self.names}

    def check(self, recipe=None):
        super().check(recipe)
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"Regress.names must be one name or more, all different. Received: names={self.names!r}")
        for option in ("mean", "deviation"):
            value = getattr(self, option)
            if value and len(value) != len(self.names):
                raise ValueError(f"Regress.{option} must be a number for each of {self.names}. Received: {value!r}")
        if any(d <= 0 for d in self.deviation):
            raise ValueError(f"Regress.deviation must be above 0. Received: {self.deviation!r}")
        if recipe is None:
            return
        if recipe.model.get("num_classes") not in (None, len(self.names)):
            raise ValueError(
                f"The model's outputs are the numbers of the task, {len(self.names)}. "
                f"Received: model.num_classes={recipe.model['num_classes']}"
            )

    def on(self, source, arguments=None):
        self.check()
        numbers = source.targets["numbers"].astype("float64")
        if numbers.shape[1] != len(self.names):
            raise ValueError(
                f"The data must have the numbers of the task, {self.names}. Received: {numbers.shape[1]} for each image"
            )
        mean, deviation = numbers.mean(0).tolist(), np.where(numbers.std(0) > 0, numbers.std(0), 1).tolist()
        return dataclasses.replace(self, mean=self.mean or tuple(mean), deviation=self.deviation or tuple(deviation))

    def settled(self, source):
        for name, values in zip(self.names, source.targets["numbers"].T):
            if np.ptp(values) == 0:
                raise ValueError(
                    f"{name!r} must not be the same number, in float32, for all training images: there is nothing to "
                    f"learn. Received: {values[0]:g} {len(values)} times"
                )
            step, deviation = np.spacing(np.abs(values).max()), values.std(dtype="float64")
            if step > FINE * deviation:
                raise ValueError(
                    f"{name!r} must differ by more than float32 tells apart: subtract what all have in common. "
                    f"Received: {values.min():.9g} to {values.max():.9g}, in steps of {step:g}"
                )
        return {"num_classes": len(self.names)}

    def of_model(self, model):
        units = next((layer for layer in model.layers if layer.name == UNITS), None)
        if units is None:
            return self
        mean, deviation = (tuple(np.ravel(values).tolist()) for values in (units.offset, units.scale))
        return dataclasses.replace(self, mean=mean, deviation=deviation)

    @classmethod
    def of_numbers(cls, model):
        """Returns the task of a model with output `(batch, numbers)`, with the names in its metadata, or indices."""
        count = model.output_shape[-1]
        return cls(names=stated_labels(model) or (tuple(map(str, range(count))) if count > 1 else cls.names))

    def fits(self, model):
        """Returns whether the model's output is `(batch, numbers)`."""
        return model.output_shape == (None, len(self.names))

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to numbers, `(batch, numbers)`."""
        count = len(self.names)
        encoder = self.vit(**{**arguments, "num_classes": count})
        if encoder.output_shape != (None, count):
            raise ValueError(
                "A model of numbers must return one vector for each image. "
                f"Received: output shape {encoder.output_shape}, pooling={encoder.get_layer('pool').pooling!r}"
            )
        mean, deviation = self.mean or (0.0,) * count, self.deviation or (1.0,) * count
        units = keras.layers.Rescaling(list(deviation), list(mean), name=UNITS, dtype="float32")
        return Model(encoder.input, units(encoder.output), name=encoder.name)

    def compiled(self, source):
        return {"loss": NumberLoss(self.loss, self.deviation or None), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns float32 images, 0..255, and numbers, float32 `(batch, numbers)`, in the units of the data."""
        return examples["images"], examples["numbers"]

    def callbacks(self, run):
        return [Measured(run, self.tally, self.tally().scores)]

    def titled(self, score):
        words, unit = super().titled(score)
        if score in ("mae", "rmse", "r2") and len(self.names) == 1:
            return words, measured(self.names[0])[1] if score != "r2" else ""
        return words, "standard deviations" if score == "mae" else unit

    def tally(self, keep=False):
        return NumberTally(self.names, self.deviation, keep)

    def answer(self, output):
        """Returns each number by name, in the order of `names`, from `(numbers,)`."""
        return dict(zip(self.names, np.ravel(output).tolist()))

    def listed(self, output, top):
        """Returns the pairs of all numbers, from `(numbers,)`."""
        return [*self.answer(output).items()]

    def caption(self, output, example):
        """Returns each prediction and its true value as text, from `output` and `"numbers"`, both `(numbers,)`."""
        truth = np.ravel(example["numbers"]).tolist()
        predictions = self.answer(output).items()
        return ", ".join(f"{name} {value:.4g} (true {true:.4g})" for (name, value), true in zip(predictions, truth))
