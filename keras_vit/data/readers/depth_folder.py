"""The folders `images` and `depth`: which map of depth belongs to which image, and what is wrong with them."""

import pathlib

from keras_vit.data import inspection
from keras_vit.data.augment import depths
from keras_vit.data.readers.mask_folder import more
from keras_vit.utils.depth_maps import ENDINGS
from keras_vit.utils.folders import files_in

TURNED = "the image has an EXIF orientation, and nothing says whether the depth has it too: turn its pixels before"


def check(folder):
    """Raises ValueError unless a folder contains the folders `images` and `depth`."""
    lacking = [name for name in ("images", "depth") if not (folder / name).is_dir()]
    if lacking:
        raise ValueError(f"{str(folder)!r} must contain the folders 'images' and 'depth'. Received: no {lacking[0]!r}")


def inspected(images, folder):
    """Returns the pairs of `pairs`, and the `depths.Depth` of each, with a fault where its image is turned."""
    found = pairs(images, folder)
    checked, seen = depths.inspect_all([depth for _, depth in found]), inspection.inspect_all(images)
    return found, [one._replace(fault=TURNED) if image.orientation > 1 else one for one, image in zip(checked, seen)]


def pairs(images, folder):
    """Returns the map of each image, `depth/NAME.png` or `depth/NAME.npy`.

    Args:
        images: Paths of the images, in `folder / "images"` or folders in it.
        folder: Contains `images` and `depth`.

    Returns:
        List of pairs of paths.

    Raises:
        ValueError: If an image has no map, or a map no image, or one has two.
    """
    found, named = {}, {}
    for name, file in _named(files_in(folder / "depth"), folder / "depth"):
        if not file.lower().endswith(ENDINGS):
            raise ValueError(f"Maps of depth must be PNG or .npy files. Received: {file!r}")
        if name in found:
            raise ValueError(f"Each image must have one map of depth. Received: {found[name]!r}, {file!r}")
        found[name] = file
    for name, image in _named(images, folder / "images"):
        if name in named:
            raise ValueError(f"Each image must have a name of its own. Received: {named[name]!r}, {image!r}")
        named[name] = image
    for rule, these, those in (
        ("Every image must have a map of depth, depth/NAME.png or depth/NAME.npy", named, found),
        ("Every map of depth must have an image of its name", found, named),
    ):
        alone = [these[name] for name in these if name not in those]
        if alone:
            raise ValueError(f"{rule}. Received: {alone[0]!r} without{more(alone)}")
    if not named:
        raise ValueError(f"{str(folder / 'images')!r} must contain images. Received: none")
    return [(image, found[name]) for name, image in named.items()]


def _named(files, folder):
    return [(pathlib.Path(file).relative_to(folder).with_suffix(""), str(file)) for file in files]
