"""The folders `images` and `depth`, and what is wrong with maps of depth."""

from keras_vit.data import inspection
from keras_vit.data.augment import depths
from keras_vit.data.readers.paired_files import pairs
from keras_vit.utils.depth_maps import ENDINGS

TARGET, WHAT = "depths", "depth map"
TURNED = "the image has an EXIF orientation, and nothing says whether the depth has it too: turn its pixels before"


def check(folder):
    """Raises ValueError unless a folder contains the folders `images` and `depth`."""
    lacking = [name for name in ("images", "depth") if not (folder / name).is_dir()]
    if lacking:
        raise ValueError(f"{str(folder)!r} must contain the folders 'images' and 'depth'. Received: no {lacking[0]!r}")


def inspected(images, folder):
    """Returns pairs of an image and its depth map, and the `depths.Depth` of each, with a fault where it is turned."""
    check(folder)
    depth_pairs = pairs(images, folder, "depth", WHAT, ENDINGS)
    checked, seen = depths.inspect_all([depth for _, depth in depth_pairs]), inspection.inspect_all(images)
    return depth_pairs, [
        one._replace(fault=TURNED) if image.orientation > 1 else one for one, image in zip(checked, seen)
    ]
