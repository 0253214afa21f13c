"""The folders `images` and `masks`, where the values of a mask are the numbers of its objects: all are of one class."""

from typing import NamedTuple

import numpy as np

from keras_vit.data import inspection
from keras_vit.data.augment.masks import Mask
from keras_vit.data.mask_frames import seen_map
from keras_vit.data.parallel import each
from keras_vit.data.readers import mask_folder
from keras_vit.data.readers.paired_files import more
from keras_vit.data.readers.split_folders import image_files
from keras_vit.utils import images
from keras_vit.utils.instance_maps import NONE, object_values
from keras_vit.utils.warned import warn

MODES = ("1", "L", "P", "I;16", "I;16B", "I")  # of Pillow, for a PNG of one channel


class Found(NamedTuple):
    """What is found of one mask."""

    mask: Mask
    objects: int = 0


def read(folder):
    """Reads the objects of each image of a folder.

    Args:
        folder: Contains `images`, and for each of them `masks/NAME.png`: gray of 8 or 16 bits, or with a palette; 0 is
            no object.

    Returns:
        Pairs of an image and its mask, paths; and the `masks.Mask` of each, whose `rewritten` is the PNG of a map of
        objects of class 0.

    Raises:
        ValueError: If images and masks do not belong together, or a file is no such mask.
    """
    pairs = mask_folder.pairs(image_files(folder / "images", ["."])[0], folder, (".png",))
    items = zip([mask for _, mask in pairs], inspection.inspect_all([image for image, _ in pairs]))
    found = each(lambda item: _found(*item), items, "drawing masks")
    wrong = [f"{path!r}, {one.mask.fault}" for (_, path), one in zip(pairs, found) if one.mask.wrong_kind]
    if wrong:
        raise ValueError(
            "A mask of objects must be a PNG of their numbers: gray with 16 bits or fewer, or a palette. "
            f"Received: {wrong[0]}{more(wrong)}"
        )
    if len(found) > 1 and max(one.objects for one in found) == 1:
        warn(
            f"None of {len(found)} masks in {str(folder / 'masks')!r} has more than one object. Pixels of one value "
            "are one object: if the masks say only where objects are, give each object a value of its own."
        )
    return pairs, [one.mask for one in found]


def _found(path, image):
    if image.fault:
        return Found(Mask(image.fault))
    try:
        data = images.encoded(path)
        with images.in_turn(data), images.opened(data) as picture:
            if picture.format != "PNG" or picture.mode not in MODES:
                return Found(Mask(f"{picture.format} of mode {picture.mode!r}", wrong_kind=True))
            numbers = _numbers(picture, data)
    except Exception as error:  # any error of the decoder is a fault of this file
        return Found(Mask(str(error).removeprefix(f"{path!r} ").removesuffix(".")))
    counts = np.bincount(numbers.reshape(-1), minlength=2)
    objects = 1 + np.flatnonzero(counts[1:])
    table = np.full(len(counts), NONE, "int32")
    try:
        table[objects] = object_values(np.zeros(len(objects), "int64"))
    except ValueError as error:
        return Found(Mask(str(error)))
    return Found(seen_map(table[numbers], inspection.digest_of(data).tobytes(), image), len(objects))


def _numbers(picture, data):
    """Returns the values of a Pillow image, integers `(height, width)`, as its EXIF data turn it."""
    values, bits = np.asarray(picture).astype("int32"), data[24]  # in a PNG's header
    if picture.mode == "L" and bits < 8:
        values //= 255 // (2**bits - 1)  # Pillow stretches them
    return images.turned(values, images.orientation(data))
