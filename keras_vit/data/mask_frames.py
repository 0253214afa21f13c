"""Which picture masks and boxes belong to, if EXIF data turn it: as it is stored, or as it is seen."""

from keras_vit.data.augment.masks import Mask, gray_png, values_of
from keras_vit.utils.images import TURNS, mask_pixels, turned
from keras_vit.utils.instance_maps import NONE, png

UNDECIDED = (
    "the image has EXIF orientation {}, and nothing says whether {} to the pixels as they are stored or as they are "
    "seen. Turn the pixels and remove the orientation, for instance with Pillow's `ImageOps.exif_transpose`"
)


def is_stored(size, image):
    """Returns whether something belongs to an image as it is stored, and not as it is seen.

    Args:
        size: Its own `(width, height)`, or `None`.
        image: The `inspection.Inspected` of the image.

    Returns:
        A bool; `None` if the size does not decide.
    """
    if image.orientation == 1 or size not in (None, image.size, image.size[::-1]):  # another size is another error
        return False
    if size is None or image.orientation < 5 or size == size[::-1]:
        return None
    return size != image.size


def seen_mask(mask, path, image):
    """Returns a `masks.Mask` as the image is seen; or with a fault, if it cannot be decided."""
    stored = is_stored(mask.size, image)
    if stored is None:
        return mask._replace(fault=UNDECIDED.format(image.orientation, "it belongs"))
    if not stored:
        return mask
    values = mask_pixels(mask.rewritten) if mask.rewritten else values_of(path)
    values = turned(values, image.orientation)
    return mask._replace(rewritten=gray_png(values), size=image.size)


def seen_map(values, digest, image):
    """Returns the `masks.Mask` of a map of objects as the image is seen; or with a fault, if it cannot be decided.

    Args:
        values: The map, integers `(height, width)`, as in `utils.instance_maps`.
        digest: Hash of what it was made from.
        image: The `inspection.Inspected` of the image.
    """
    size = values.shape[::-1]
    stored = is_stored(size, image)
    if stored is None and (values != NONE).any():
        return Mask(UNDECIDED.format(image.orientation, "it belongs"))
    if stored:
        values, size = turned(values, image.orientation), image.size
    return Mask(None, False, digest, size, None, png(values))


def seen_boxes(objects, image):
    """Returns `box_files.Objects` as the image is seen; or with a fault, if it cannot be decided."""
    stored = is_stored(objects.size, image)
    if stored is None and objects.edges:
        return objects._replace(fault=UNDECIDED.format(image.orientation, "they belong"))
    if not stored:
        return objects
    return objects._replace(edges=tuple(_turned(edges, image) for edges in objects.edges), size=image.size)


def _turned(edges, image):
    """Returns the edges of a box, top, left, bottom and right, in a turned image."""
    swapped, *steps = TURNS[image.orientation - 1]
    rows, columns = edges[::2], edges[1::2]
    pairs = zip((columns, rows) if swapped else (rows, columns), steps, image.size[::-1])
    (top, bottom), (left, right) = (
        (first, last) if step > 0 else (side - last, side - first) for (first, last), step, side in pairs
    )
    return top, left, bottom, right
