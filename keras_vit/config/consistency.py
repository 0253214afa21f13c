"""Checks the options of a recipe against each other."""

import json

import numpy as np

from keras_vit.config import cropping
from keras_vit.models.options import check_names
from keras_vit.utils import bands, checks


def check_recipe(recipe):
    """Returns the recipe; raises ValueError if its options contradict each other, or for unknown model arguments."""
    from keras_vit.checkpoints.pretrained import DEFAULTS

    loading = {"head"} if recipe.model.get("weights") else set()  # arguments of `from_checkpoint`
    check_names(recipe.model, [*DEFAULTS, *recipe.task.arguments, *loading])
    try:
        json.dumps(recipe.model)
    except TypeError:
        raise ValueError(
            f"A recipe's `model` must contain only JSON values. Received: {checks.shown(recipe.model)}"
        ) from None
    bands.check_options(recipe.data)
    own, of_data = recipe.model.get("value_range"), recipe.data.value_range
    if own is not None and not np.array_equal(own, checks.BYTES if of_data is None else of_data):
        raise ValueError(
            "The range of a recipe's pixels is data.value_range, which the model takes from there. Received: "
            f"model.value_range={checks.shown(own)}, data.value_range={checks.shown(of_data)}"
        )
    fold = recipe.data.fold
    if fold is not None and not 1 <= fold[0] <= fold[1] > 1:
        raise ValueError(f"data.fold must be (number, count), such as (1, 5) to (5, 5). Received: {checks.shown(fold)}")
    channels = recipe.model.get("channels", 3)
    colors = next((name for name in ("jitter", "randaugment") if getattr(recipe.augment, name)), None)
    if channels not in (1, 3) and colors:
        raise ValueError(f"augment.{colors} needs images of 1 or 3 channels. Received: channels={channels}")
    if recipe.model.get("weights") and "image_size" not in recipe.model:
        raise ValueError(f"A recipe with model.weights must set image_size too. Received: {checks.shown(recipe.model)}")
    resize = recipe.data.resize
    if isinstance(resize, int | tuple) and getattr(recipe.task, "start", None) and "image_size" not in recipe.model:
        raise ValueError(
            "data.resize of a recipe with task.start needs model.image_size, the pixels of its images. "
            f"Received: data.resize={checks.shown(resize)}, model={checks.shown(recipe.model)}"
        )
    image = checks.pair("image_size", recipe.model.get("image_size", DEFAULTS["image_size"]))
    if isinstance(resize, int) and resize < min(image):
        raise ValueError(
            f"data.resize must be at least {min(image)}, the shorter side of image_size. Received: {resize}"
        )
    if isinstance(resize, tuple) and not (len(resize) == 2 and resize[0] >= image[0] and resize[1] >= image[1]):
        raise ValueError(f"data.resize must be at least the image_size, {image}. Received: {resize}")
    if isinstance(resize, tuple) and abs(resize[0] / image[0] - resize[1] / image[1]) * max(image) >= 1:
        raise ValueError(f"data.resize must enlarge both sides of image_size, {image}, alike. Received: {resize}")
    if recipe.data.crops_per_image is not None:
        cropping.check(recipe)
    recipe.task.check(recipe)
    return recipe
