"""Folders of images with masks of objects: COCO's instances, COCO's panoptic segments, or numbered masks."""

from typing import NamedTuple

from keras_vit.data.augment.masks import Mask
from keras_vit.data.readers import coco_files, coco_masks, mask_folder, numbered_masks, panoptic_folder


class Objects(NamedTuple):
    """The objects of the images of a folder."""

    pairs: list[tuple[str, str]]  # an image, and the file that its objects are from
    checked: list[Mask]  # of each, with the PNG of a map of objects, as in `utils.instance_maps`
    class_names: tuple[str, ...] = ()
    stuff: tuple[str, ...] = ()  # names of the classes that are regions


def has_objects(folder):
    """Returns whether a folder contains masks of objects, in a layout that `read` takes."""
    return bool(_files(folder)) or mask_folder.is_paired(folder)


def read(folder, root, skip=False):
    """Reads the masks of objects of a folder.

    Args:
        folder: Contains `annotations.json` (COCO) and the images that it names, directly or in `images`; or
            `panoptic.json` and the folder `panoptic`; or the folders `images` and `masks`, where the values of a mask
            are the numbers of its objects, all of one class, which has no name here.
        root: The folder of all splits, for errors.
        skip: Whether objects that are wrong are left out with a warning, instead of an error.

    Returns:
        `Objects`.

    Raises:
        ValueError: If there is no such layout, or are two; or if what is in it does not belong together.
    """
    found = _files(folder)
    if len(found) > 1:
        raise ValueError(
            f"{str(folder)!r} must have one file of objects: move the other one. "
            f"Received: {', '.join(path.name for path in found)}"
        )
    if found and found[0].name == panoptic_folder.FILE:
        objects = Objects(*panoptic_folder.read(folder, skip))
    elif found:
        paths, checked, names = coco_masks.read(folder, found[0], skip)
        objects = Objects([(path, str(found[0])) for path in paths], checked, names)
    elif mask_folder.is_paired(folder):
        objects = Objects(*numbered_masks.read(folder))
    else:
        names = ", ".join(sorted(entry.name for entry in folder.iterdir())[:10]) or "an empty folder"
        raise ValueError(
            f"{str(folder)!r} must contain 'annotations.json' (COCO), 'panoptic.json' and the folder 'panoptic', or "
            f"the folders 'images' and 'masks', or {str(root)!r} 'data.yaml' (YOLO). Received: {names}"
        )
    if not objects.pairs:
        raise ValueError(f"{str(folder)!r} must contain images that {found[0].name} names. Received: none")
    return objects


def _files(folder):
    names = (*coco_files.NAMES, panoptic_folder.FILE)
    return [folder / name for name in names if (folder / name).is_file()]
