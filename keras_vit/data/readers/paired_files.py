"""Which file of another folder belongs to which image: the one of its name."""

import pathlib

from keras_vit.utils.folders import IMAGE_ENDINGS, OTHER_PICTURES, files_in
from keras_vit.utils.names import composed

# Endings of pictures and arrays. Other files, such as a README, are passed over.
PIXELS = (*IMAGE_ENDINGS, *OTHER_PICTURES, ".pfm", ".npy", ".npz")


def pairs(images, folder, part, what, endings):
    """Returns the file of each image, `PART/NAME.png`.

    Args:
        images: Paths of the images, in `folder / "images"` or folders in it.
        folder: Contains the folders `images` and `part`.
        part: Name of the folder of the other files.
        what: What one of them is, such as `"mask"`.
        endings: Their endings, in lower case.

    Returns:
        List of pairs of paths.

    Raises:
        ValueError: If an image has no such file, or two, or such a file no image; if two images have one name; for
            pictures and arrays of other endings.
    """
    by_name, named = {}, {}
    for name, file in _named(map(str, files_in(folder / part)), folder / part):
        ending = pathlib.Path(file).suffix.lower()
        if ending in endings:
            if name in by_name:
                raise ValueError(f"Each image must have one {what}. Received: {by_name[name]!r}, {file!r}")
            by_name[name] = file
        elif ending in PIXELS:
            kinds = " or ".join("PNG" if ending == ".png" else ending for ending in endings)
            raise ValueError(f"{what.capitalize()}s must be {kinds} files. Received: {file!r}")
    for name, image in _named(images, folder / "images"):
        if name in named:
            raise ValueError(
                f"Each image must have a name of its own, the one of its {what}. Received: {named[name]!r}, {image!r}"
            )
        named[name] = image
    where = " or ".join(f"{part}/NAME{ending}" for ending in endings)
    for rule, these, those, lacks in (
        (f"Every image must have a {what}, {where}", named, by_name, what),
        (f"Every {what} must have an image of its name", by_name, named, "image"),
    ):
        if alone := [these[name] for name in these if name not in those]:
            raise ValueError(f"{rule}. Received: {alone[0]!r} without {lacks}{more(alone)}")
    if not named:
        raise ValueError(f"{str(folder / 'images')!r} must contain images. Received: none")
    return [(image, by_name[name]) for name, image in named.items()]


def _named(files, folder):
    """Returns files with their names: their paths in a folder without endings, in one form of Unicode."""
    return [(composed(str(pathlib.Path(file).relative_to(folder).with_suffix(""))), file) for file in files]


def more(items):
    """Returns how many items there are besides the one that an error names, as words."""
    return f", and {len(items) - 1} more" if len(items) > 1 else ""
