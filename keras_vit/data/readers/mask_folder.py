"""The folders `images` and `masks`: which mask belongs to which image, and what is wrong with them."""

import pathlib

import numpy as np

from keras_vit.data import inspection
from keras_vit.data.augment import masks
from keras_vit.utils.folders import files_in
from keras_vit.utils.images import encoded

NOT_MASKS = (".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".npy", ".npz")


def is_paired(folder):
    """Returns whether a folder contains the folders `images` and `masks`."""
    return (folder / "images").is_dir() and (folder / "masks").is_dir()


def pairs(images, folder):
    """Returns the mask of each image, `masks/NAME.png`.

    Args:
        images: Paths of the images, in `folder / "images"` or folders in it.
        folder: Contains `images` and `masks`.

    Returns:
        List of pairs of paths.

    Raises:
        ValueError: If an image has no mask, or a mask no image, or two images have one name.
    """
    found = {}
    for file in map(pathlib.Path, files_in(folder / "masks")):
        name = file.relative_to(folder / "masks").with_suffix("")
        if file.suffix.lower() == ".png":
            if name in found:
                raise ValueError(f"Each image must have one mask. Received: {found[name]!r}, {str(file)!r}")
            found[name] = str(file)
        elif file.suffix.lower() in NOT_MASKS:
            raise ValueError(f"Masks must be PNG files. Received: {str(file)!r}")
    named = {}
    for image in images:
        name = pathlib.Path(image).relative_to(folder / "images").with_suffix("")
        if name in named:
            raise ValueError(
                "Each image must have a name of its own, since masks have the same. "
                f"Received: {named[name]!r}, {image!r}"
            )
        named[name] = image
    _check_none("Every image must have a mask, masks/NAME.png", [named[n] for n in named if n not in found], "mask")
    _check_none("Every mask must have an image of its name", [found[n] for n in found if n not in named], "image")
    if not named:
        raise ValueError(f"{str(folder / 'images')!r} must contain images. Received: none")
    return [(image, found[name]) for name, image in named.items()]


def inspect(paths):
    """Returns the `masks.Mask` of each file; raises ValueError if one is no mask of class indices."""
    checked = masks.inspect_all(paths)
    wrong = [f"{path!r}, {mask.fault}" for path, mask in zip(paths, checked) if mask.wrong_kind]
    if wrong:
        raise ValueError(
            "A mask must be a PNG of class indices: gray with 8 bits or fewer, or a palette. "
            f"Received: {wrong[0]}{more(wrong)}"
        )
    return checked


def check_sizes(pairs, checked, what="mask"):
    """Raises ValueError unless each `masks.Mask`, or `depths.Depth`, has the size of its image."""
    seen = zip(pairs, inspection.inspect_all([image for image, _ in pairs]), checked)
    wrong = [
        f"{path!r} of {found.size[0]} x {found.size[1]} pixels for an image of {image.size[0]} x {image.size[1]}"
        for (_, path), image, found in seen
        if image.size != found.size
    ]
    if wrong:
        raise ValueError(f"A {what} must have the size of its image. Received: {wrong[0]}{more(wrong)}")


def items(paths, checked):
    """Returns what a `memory.Source` holds of masks: their paths; or bytes, if some must be written as gray PNGs."""
    if not any(mask.rewritten for mask in checked):
        return np.array(paths)
    array = np.empty(len(paths), object)
    for i, (path, mask) in enumerate(zip(paths, checked)):
        array[i] = mask.rewritten or encoded(path)
    return array


def _check_none(rule, paths, lacks):
    if paths:
        raise ValueError(f"{rule}. Received: {paths[0]!r} without {lacks}{more(paths)}")


def more(items):
    """Returns how many items there are beside the one that an error names, as words."""
    return f", and {len(items) - 1} more" if len(items) > 1 else ""
