"""From a source of pictures to the source of their crops, as a recipe's `data.crops_per_image` asks for."""

import dataclasses

import numpy as np

from keras_vit.data import inspection
from keras_vit.data.memory import Source
from keras_vit.data.readers import mask_folder
from keras_vit.data.windows import boxes, places, plan
from keras_vit.data.windows.source import BOXES, MASKS, Crops, Grid
from keras_vit.utils import bands, checks
from keras_vit.utils.images import MOST_PIXELS


def crops(pictures, task, recipe, shape):
    """Returns the source of random crops for training; of a recipe without `crops_per_image`, the pictures.

    Args:
        pictures: A `Source`.
        task: The task, which has met the data.
        recipe: A `Recipe`, whose `data` is read.
        shape: `(height, width, channels)` of the images that the task takes.

    Raises:
        ValueError: For data or targets that have no crops.
    """
    data = recipe.data
    if data.crops_per_image is None:
        return pictures
    size, shapes = _size(pictures, data, shape), _shapes(pictures)
    of = {
        **_fields(pictures),
        "pictures": pictures,
        "shapes": shapes,
        "size": size,
        "reading": _reading(pictures, data),
    }
    draft = Crops(**of, plan=plan.anywhere(size[:2], shapes, data.crops_per_image), visible=data.crops_visible)
    if BOXES in pictures.targets:
        most = getattr(task, "most", draft.most_boxes)
        if draft.most_boxes > most:
            raise ValueError(
                f"{type(task).__name__}.most must be the objects of a crop or more. Received: most={most}, and a crop "
                f"that may have {draft.most_boxes}"
            )
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


def grid(pictures, recipe, shape, every=False):
    """Returns the source of a fixed grid of crops for evaluation; of a recipe without `crops_per_image`, the pictures.

    Args:
        pictures, recipe, shape: As in `crops`.
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
    fields |= {name: fields[name][of] for name in ("images", "groups", "digests") if fields[name] is not None}
    fields["targets"] = {name: column[of] for name, column in pictures.targets.items() if name != BOXES}
    starts = np.concatenate(starts)
    if BOXES in pictures.targets:
        rows = [
            boxes.cut(pictures.targets[BOXES][i], shapes[i], start, size[:2], data.crops_visible)
            for i, start in zip(of, starts)
        ]
        fields["targets"][BOXES] = boxes.padded(rows, max(map(len, rows)))
    fields |= {"pictures": pictures, "shapes": shapes, "size": size, "reading": _reading(pictures, data)}
    source = Grid(**fields, places=of, starts=starts)
    if MASKS in pictures.targets:
        vars(source)["mask_counts"] = pictures.mask_counts[of]  # of their pictures: which classes there are
    return source


def whole(pictures, recipe):
    """Returns the source of pictures that are scored whole, whose masks are PNGs.

    Raises:
        ValueError: For pictures of crops that are too large to be decoded whole.
    """
    if recipe.data.crops_per_image is None or not pictures.files:
        return pictures
    large = np.flatnonzero(_shapes(pictures).prod(axis=1) > MOST_PIXELS)
    if len(large):
        raise ValueError(
            f"Pictures must have at most {MOST_PIXELS // 10**6} million pixels to be scored whole; Segment and Detect "
            f"score crops with task.tiles=False. Received: {str(pictures.images[large[0]])!r}"
        )
    if MASKS not in pictures.targets:
        return pictures
    column = mask_folder.as_pngs(pictures.targets[MASKS])
    return dataclasses.replace(pictures, targets={**pictures.targets, MASKS: column})


def _fields(pictures):
    """Returns the fields of a `Source`, a dictionary."""
    return {field.name: getattr(pictures, field.name) for field in dataclasses.fields(Source)}


def _size(pictures, data, shape):
    """Returns `(height, width, channels)` of a crop; raises ValueError for data without crops."""
    if type(pictures) is not Source:
        raise ValueError(
            "data.crops_per_image is for pictures in folders and in memory, not for TFRecord files. "
            f"Received: data.source={data.source!r}"
        )
    if "references" in pictures.targets:
        raise ValueError(
            "A crop has no reference of its own. Received: data.crops_per_image="
            f"{data.crops_per_image} with pictures that have references"
        )
    return (*(checks.pair("data.crops_size", data.crops_size) if data.crops_size else shape[:2]), shape[2])


def _reading(pictures, data):
    """Returns how files become numbers, of pictures of any bands and depth; of bytes and arrays `None`."""
    return bands.reading_of(data) if pictures.files and pictures.bands is not None else None


def _shapes(pictures):
    """Returns the `(height, width)` of each picture, int64 `(pictures, 2)`."""
    if pictures.files:
        sizes = [one.size[::-1] for one in inspection.inspect_all(pictures.images, by_windows=True)]
    else:
        sizes = [size for _, size in pictures.sizes()]  # of arrays one for all
    return np.array(sizes if len(sizes) == len(pictures) else sizes * len(pictures), "int64").reshape(-1, 2)
