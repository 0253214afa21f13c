"""The folders `images` and `references`, and what is wrong with references."""

from typing import NamedTuple

from keras_vit.data import inspection
from keras_vit.data.readers import paired_files
from keras_vit.utils import deep_files
from keras_vit.utils.folders import IMAGE_ENDINGS

TARGET, WHAT = "references", "reference"

ENDINGS = tuple(each for each in IMAGE_ENDINGS if each not in deep_files.ENDINGS)  # bands are not restored


class Reference(NamedTuple):
    """What is known of the file of a reference."""

    size: tuple[int, int]  # (width, height), upright
    fault: str | None  # why it cannot be read
    digest: bytes
    what: str = WHAT


def is_paired(folder):
    """Returns whether a folder contains the folders `images` and `references`."""
    return (folder / "images").is_dir() and (folder / "references").is_dir()


def seen(paths):
    """Returns the `Reference` of each file."""
    return [Reference(one.size, one.fault, one.digest) for one in inspection.inspect_all(list(paths))]


def inspected(images, folder):
    """Returns pairs of an image and its reference, `references/NAME.png`, and the `Reference` of each."""
    pairs = paired_files.pairs(images, folder, "references", WHAT, ENDINGS)
    return pairs, seen([path for _, path in pairs])
