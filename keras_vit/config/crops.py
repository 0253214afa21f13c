"""Checks the options of crops of large pictures against the rest of a recipe."""

from keras_vit.utils import checks

TARGETS = {"labels", "multilabels", "segmentation_masks", "bounding_boxes"}  # that a crop of a picture has too


def check(recipe):
    """Raises ValueError if a recipe with `data.crops_per_image` asks for crops that there are not."""
    data, task = recipe.data, recipe.task
    targets, name = set(task.targets), type(task).__name__
    if task.clips is not None or task.of_texts or targets - TARGETS:
        wrong = "clips" if task.clips is not None else "texts" if task.of_texts else min(targets - TARGETS)
        raise ValueError(
            "data.crops_per_image is for images alone, and for labels, boxes and masks of classes. Received: "
            f"{name}, a task of {wrong.replace('_', ' ')}"
        )
    if data.crops_size is not None:
        checks.pair("data.crops_size", data.crops_size)
    if data.resize not in (None, "window"):
        raise ValueError(
            "Crops are cut at the size of the pictures' pixels: data.resize must be None, or 'window' for Restore. "
            f"Received: data.resize={checks.shown(data.resize)} with data.crops_per_image={data.crops_per_image}"
        )
    if data.source == "digits" or data.source.startswith("tfds:"):
        raise ValueError(
            "data.crops_per_image is for pictures in a folder, and for arrays. Received: "
            f"data.source={data.source!r} with data.crops_per_image={data.crops_per_image}"
        )
    if data.crops_balanced and not targets & {"segmentation_masks", "bounding_boxes"}:
        raise ValueError(f"data.crops_balanced is for masks and boxes. Received: {name}, a task without")
    for option in ("crops_empty", "crops_visible"):
        if getattr(data, option) != getattr(type(data), option) and "bounding_boxes" not in targets:
            raise ValueError(f"data.{option} is for boxes. Received: {name}, a task without")
