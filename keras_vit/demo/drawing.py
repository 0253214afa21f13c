"""Turns a drawing into an image like those of a data set."""

import numpy as np

SKETCHED = 64  # pixels: the page offers a pad for gray images up to this side
PAD, BRUSH = 280, 11  # side of the pad, and radius of the brush, in pixels
# How data sets place an object: side of the image, longer side of the object, what is centered (its mass or its
# bounding box), and at which pixel. LeCun et al. 1998, section III.A; Xiao et al. 2017 (arXiv:1708.07747), section 2;
# measured.
PLACES = {"tfds:mnist": (28, 20, "mass", 14.5), "tfds:fashion_mnist": (28, 28, "box", 14), "digits": (8, 8, "box", 4)}


def from_drawing(drawing, size, source):
    """Resizes a drawing to the model's input, and places it as the data set does, if that is known.

    Args:
        drawing: uint8 array, `(rows, columns, 4)`, RGBA, white on black.
        size: `(height, width, 1)`.
        source: `source` of a recipe's data, such as `"tfds:mnist"`.

    Returns:
        float32 array of `size`, 0..255, white on black; `None` if the pad is empty.
    """
    from PIL import Image

    ink = (drawing[..., :3].max(axis=-1) * (drawing[..., 3] / 255)).astype("uint8")
    rows, columns = (np.flatnonzero(ink.max(axis=axis) > 127) for axis in (1, 0))
    if not len(rows):
        return None
    side, longer, centered, middle = PLACES.get(source, (None,) * 4)
    if size[:2] != (side, side):
        return np.asarray(Image.fromarray(ink).resize(size[1::-1], Image.Resampling.BILINEAR), "float32")[..., None]
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = (max(round(longer * n / max(ink.shape)), 1) for n in ink.shape)
    ink = np.asarray(Image.fromarray(ink).resize((width, height), Image.Resampling.BILINEAR), "float32")
    weight = ink if centered == "mass" else np.ones_like(ink)
    center = [np.average(np.arange(n) + 0.5, weights=weight.sum(axis)) for axis, n in ((1, height), (0, width))]
    top, left = (round(np.clip(middle - at, 0, side - n)) for at, n in zip(center, (height, width)))
    pixels = np.zeros(size, "float32")
    pixels[top : top + height, left : left + width, 0] = ink
    return pixels


def about_pad(size, source):
    """Returns the text below the pad; arguments as in `from_drawing`."""
    if PLACES.get(source, (None,))[0] != size[0]:
        return (
            f"The whole pad is scaled to {size[0]} x {size[1]} pixels, white on black. If the training images look "
            "different, expect poor predictions."
        )
    side, longer, centered, _ = PLACES[source]
    center = "center of mass" if centered == "mass" else "bounding box"
    return (
        f"White on black, as the training images. The drawing is cropped, scaled to {longer} of {side} pixels and "
        f"centered by its {center}, as they are. A mouse still draws unlike a pen."
    )
