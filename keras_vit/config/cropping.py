"""Options of crops of pictures that are larger than a model's images, and their checks against the rest of a recipe."""

from dataclasses import dataclass

from keras_vit.utils import checks
from keras_vit.utils.checked import Checked, number, only_with

CUT = "crops_per_image"  # switches the others on
RULE = "data.crops_per_image"

TARGETS = {"labels", "multilabels", "segmentation_masks", "bounding_boxes"}  # that a crop of a picture has too


@dataclass(frozen=True, repr=False, kw_only=True)
class Cropping(Checked):
    """How a model is trained on random crops of large pictures: a part of `Data`. See `docs/crops.md`."""

    crops_per_image: int | None = only_with(CUT, number(None, low=1))  # of each training picture, in an epoch
    crops_size: int | tuple[int, int] | None = only_with(CUT, number(None, low=1), RULE)  # pixels; None: the model's
    crops_balanced: bool = only_with(CUT, False, RULE)  # whether pixels or objects of each class are as often inside
    crops_empty: float = only_with(CUT, number(0.1, most=1), RULE)  # share that is not drawn around an object
    crops_visible: float = only_with(CUT, number(0.5, low=0.01, most=1), RULE)  # least share of an object's area


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
    if data.crops_balanced and not targets & {"segmentation_masks", "bounding_boxes"}:
        raise ValueError(f"data.crops_balanced is for masks and boxes. Received: {name}, a task without")
    for option in ("crops_empty", "crops_visible"):
        if getattr(data, option) != getattr(type(data), option) and "bounding_boxes" not in targets:
            raise ValueError(f"data.{option} is for boxes. Received: {name}, a task without")
