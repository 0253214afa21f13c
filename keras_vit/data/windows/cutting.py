"""From a source of pictures to the source of their crops, as a recipe's `data.crops_per_image` asks for."""

import dataclasses

import numpy as np

from keras_vit.data.memory import Source
from keras_vit.data.windows import boxes, places, plan
from keras_vit.data.windows.source import BOXES, MASKS, Crops, Grid
from keras_vit.utils import checks

TARGETS = {"labels", "multilabels", MASKS, BOXES}  # that a crop has too


def crops(pictures, task, recipe, shape):
    """Returns the source of random crops for training; of a recipe without `crops_per_image`, the pictures.

    Args:
        pictures: A `Source`.
        task: The task, which has met the data.
        recipe: A `Recipe`, whose `data` is read.
        shape: `(height, width, channels)` of the images that the task takes.

    Raises:
        ValueError: For data or targets of which there are no crops.
    """
    data = recipe.data
    if data.crops_per_image is None:
        return pictures
    size, shapes = _size(pictures, data, shape), _shapes(pictures)
    of = {**_fields(pictures), "pictures": pictures, "shapes": shapes, "size": size}
    draft = Crops(**of, plan=plan.anywhere(size[:2], shapes, data.crops_per_image), visible=data.crops_visible)
    draft = dataclasses.replace(draft, most=getattr(task, "most", None))
    if BOXES in pictures.targets:
        regions, counts = places.of_boxes(pictures.targets[BOXES], shapes, len(task.classes))
        if not data.crops_balanced:  # objects of all classes alike, and pictures with objects
            regions = [[np.concatenate([np.zeros((0, 4)), *classes])] for classes in regions]
            counts = counts.any(axis=1, keepdims=True)
        drawn = size[:2], shapes, data.crops_per_image, regions, counts, data.crops_empty
        return dataclasses.replace(draft, plan=plan.around(*drawn))
    if data.crops_balanced:
        values = range(getattr(task, "first", 0), getattr(task, "first", 0) + len(task.classes))
        found = places.in_masks(lambda place: draft.open_one((MASKS, place)), len(pictures), values)
        return dataclasses.replace(draft, plan=plan.around(size[:2], shapes, data.crops_per_image, *found, 0.0))
    return draft


def grid(pictures, task, recipe, shape, every=False):
    """Returns the source of a fixed grid of crops for evaluation; of a recipe without `crops_per_image`, the pictures.

    Args:
        pictures, task, recipe, shape: As in `crops`.
        every: Whether to take all crops that cover a picture. Else at most `crops_per_image` of each are taken, always
            the same, drawn from these.
    """
    data = recipe.data
    if data.crops_per_image is None:
        return pictures
    size, shapes = _size(pictures, data, shape), _shapes(pictures)
    random, starts = np.random.default_rng(0), []
    for own in shapes:
        found = plan.grid(own, size[:2])
        if not every and len(found) > data.crops_per_image:
            found = found[np.sort(random.permutation(len(found))[: data.crops_per_image])]
        starts.append(found)
    of = np.repeat(np.arange(len(starts)), [*map(len, starts)])
    fields = _fields(pictures)
    fields |= {name: value[of] for name, value in fields.items() if name in ("images", "groups", "digests") and value is not None}
    fields["targets"] = {name: column[of] for name, column in pictures.targets.items() if name != BOXES}
    starts = np.concatenate(starts)
    if BOXES in pictures.targets:
        rows = [
            boxes.cut(pictures.targets[BOXES][i], shapes[i], start, size[:2], data.crops_visible)
            for i, start in zip(of, starts)
        ]
        fields["targets"][BOXES] = boxes.padded(rows, max(map(len, rows)))
    source = Grid(**fields, pictures=pictures, shapes=shapes, size=size, places=of, starts=starts)
    if MASKS in pictures.targets:
        vars(source)["mask_counts"] = pictures.mask_counts[of]  # of their pictures: which classes there are
    return source
