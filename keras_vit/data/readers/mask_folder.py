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


def pairs(images, folder, endings=(".png", *masks.RASTERS)):
    """Returns the mask of each image, such as `masks/NAME.png`; see `paired_files.pairs`."""
    return paired_files.pairs(images, folder, "masks", "mask", endings)


def inspect(paths):
    """Returns the `masks.Mask` of each file; raises ValueError if one is no mask of class indices."""
    checked = masks.inspect_all(paths)
    wrong = [f"{path!r}, {mask.fault}" for path, mask in zip(paths, checked) if mask.wrong_kind]
    if wrong:
        raise ValueError(
            "A mask must be a PNG of class indices: gray with 8 bits or fewer, or a palette; or a TIFF or .npy of one "
            f"band of integers from 0 to 255. Received: {wrong[0]}{more(wrong)}"
        )
    return checked


def seen(images, paths, data):
    """Returns the `masks.Mask` of each file as its image is seen, for a `config.Data`; errors as of `inspect`."""
    each = zip(inspect(paths), paths, inspection.inspect_all(images, data.crops_per_image))
    return [mask_frames.seen_mask(mask, path, image) for mask, path, image in each]


def check_sizes(pairs, checked, data, what="mask"):
    """Raises ValueError unless each `masks.Mask`, or `depths.Depth`, has the size of its image."""
    images = inspection.inspect_all([image for image, _ in pairs], data.crops_per_image)
    seen = zip(pairs, images, checked)
    wrong = [
        f"{path!r} of {mask.size[0]} x {mask.size[1]} pixels for an image of {image.size[0]} x {image.size[1]}"
        for (_, path), image, mask in seen
        if image.size != mask.size
    ]
    if wrong:
        raise ValueError(f"A {what} must have the size of its image. Received: {wrong[0]}{more(wrong)}")


def items(paths, checked, data):
    """Returns what a `memory.Source` holds of masks: their paths; or bytes, if some must be written as gray PNGs.

    With `data.crops_per_image`, TIFFs and arrays stay as they are: windows of them are read.
    """
    found = [mask.rewritten or path for path, mask in zip(paths, checked)]
    by_windows = data.crops_per_image and not any(mask.rewritten for mask in checked)
    return np.array(found, str) if by_windows else as_pngs(found)


def as_pngs(items):
    """Returns masks, paths or bytes, as a `memory.Source` holds them: all paths of PNGs, or all bytes."""
    if all(isinstance(item, str) and not masks.is_raster(item) for item in items):
        return np.array(items, str)
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        if isinstance(item, bytes):
            array[i] = item
        else:
            array[i] = masks.gray_png(masks.values_of(item)) if masks.is_raster(item) else encoded(item)
    return array
