"""The folders `images` and `masks`, and what is wrong with masks."""

import numpy as np

from keras_vit.data import inspection, mask_frames
from keras_vit.data.augment import masks
from keras_vit.data.readers import paired_files
from keras_vit.data.readers.paired_files import more
from keras_vit.utils.images import encoded


def is_paired(folder):
    """Returns whether a folder contains the folders `images` and `masks`."""
    return (folder / "images").is_dir() and (folder / "masks").is_dir()


def pairs(images, folder):
    """Returns the mask of each image, `masks/NAME.png`; see `paired_files.pairs`."""
    return paired_files.pairs(images, folder, "masks", "mask", (".png",))


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


def seen(images, paths):
    """Returns the `masks.Mask` of each file as its image is seen; errors as of `inspect`."""
    each = zip(inspect(paths), paths, inspection.inspect_all(images))
    return [mask_frames.seen_mask(mask, path, image) for mask, path, image in each]


def check_sizes(pairs, checked, what="mask"):
    """Raises ValueError unless each `masks.Mask`, or `depths.Depth`, has the size of its image."""
    seen = zip(pairs, inspection.inspect_all([image for image, _ in pairs]), checked)
    wrong = [
        f"{path!r} of {mask.size[0]} x {mask.size[1]} pixels for an image of {image.size[0]} x {image.size[1]}"
        for (_, path), image, mask in seen
        if image.size != mask.size
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
