"""Growing resolution: the first parts of a run train on smaller images, which take less time."""

import contextlib
import dataclasses

import keras

from keras_vit.layers import Positions
from keras_vit.models import anatomy
from keras_vit.models.inputs import image_shape
from keras_vit.utils import checks


def of_epoch(recipe, epoch, shape):
    """Returns the recipe of an epoch, whose padding is the same share of its images; and the images' shape.

    Args:
        recipe: A `keras_vit.config.Recipe`.
        epoch: From 0.
        shape: `(height, width, channels)` of the model's images; of its clips, which have one size, frames come first.
    """
    if not recipe.optim.image_sizes:
        return recipe, shape
    sides = [(side, side) for side in recipe.optim.image_sizes] + [shape[:2]]
    size = sides[_part(recipe.optim, epoch)]
    padding = round(recipe.augment.crop_padding * size[0] / shape[0])
    augment = dataclasses.replace(recipe.augment, crop_padding=padding)
    return dataclasses.replace(recipe, augment=augment), (*size, shape[2])


def until(optim, epoch):
    """Returns the first epoch after this one that has images of another size; `optim.epochs` if none does."""
    after = range(epoch + 1, optim.epochs)
    return next((later for later in after if _part(optim, later) != _part(optim, epoch)), optim.epochs)


def _part(optim, epoch):
    parts = len(optim.image_sizes) + 1
    return min(epoch * parts // optim.epochs, parts - 1)


def check(recipe, model, teacher=None):
    """Raises ValueError if a run cannot train on its smaller images.

    Args:
        recipe: A `keras_vit.config.Recipe`.
        model: The model that the run trains.
        teacher: Model to distill from, if there is one.
    """
    optim = recipe.optim
    if not optim.image_sizes:
        return
    for size in optim.image_sizes:
        checks.positive(**{"optim.image_sizes": size})
    height, width, channels = image_shape(model)
    sizes = (*optim.image_sizes, height)
    if height != width or list(sizes) != sorted(set(sizes)) or len(sizes) > optim.epochs:
        raise ValueError(
            f"optim.image_sizes must grow to the side of the model's square images, {height} x {width} pixels, and be "
            f"fewer than the {optim.epochs} epochs. Received: {optim.image_sizes}"
        )
    if recipe.augment.crop == "window":
        raise ValueError(
            "optim.image_sizes is not for augment.crop='window', whose boxes would be smaller parts of each image. "
            f"Received: {optim.image_sizes}"
        )
    if len(model.output_shape) != 2:
        raise ValueError(
            "optim.image_sizes is for models with one output vector per image, not one per pixel. "
            f"Received: {optim.image_sizes} and outputs of shape {model.output_shape}"
        )
    if recipe.task.learner(model, teacher) is not model:
        raise ValueError(
            "optim.image_sizes is for tasks that train the model alone, without a teacher or a decoder. "
            f"Received: {optim.image_sizes} and the task {type(recipe.task).__name__}"
        )
    for size in optim.image_sizes:
        try:
            attention = [block.attention for block in anatomy.blocks(model)]
            if any(part.rotary is not None or part.relative is not None for part in attention):
                raise ValueError("its rotary or relative positions are those of one grid of patches.")
            if any(isinstance(layer, Positions) for layer in model.layers):
                raise ValueError("its positions in blocks are those of one grid of patches.")
            with any_size(model, optim):
                model.compute_output_spec(keras.KerasTensor((1, size, size, channels)), training=True)
        except ValueError as error:
            raise ValueError(f"{model.name!r} cannot be trained on images of {size} x {size} pixels: {error}") from None


@contextlib.contextmanager
def any_size(model, optim):
    """A block in which a model takes images of other sizes, if `optim` has them. `PatchEncoder` resamples positions."""
    spec = model.input_spec
    model.input_spec = None if optim.image_sizes else spec
    try:
        yield
    finally:
        model.input_spec = spec
