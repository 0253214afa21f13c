"""What every picture is drawn on, and with."""

import io
import re

import numpy as np

from keras_vit import checks

# Okabe and Ito's palette, which colour-blind people can tell apart, without its black and yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def figure(width, height):
    """Returns an empty figure, sizes in inches, which a notebook shows."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained", dpi=120)
    drawn._repr_png_ = lambda: _png(drawn)  # without pyplot, which keeps what it draws
    return drawn


def _png(drawn):
    written = io.BytesIO()
    drawn.savefig(written, format="png")
    return written.getvalue()


def tiles(count, across, shape, size=1.6, times=1):
    """Returns a figure, and a list of axes without frames for tiles in rows.

    Args:
        count: Tiles.
        across: Tiles in a row.
        shape: `(height, width, ...)` of a picture.
        size: Inches of a picture's width.
        times: Pictures a tile, side by side.
    """
    across = max(1, min(across, count))
    size = max(size, 4.8 / (across * times))  # wide enough for a heading
    rows = -(-count // across)
    drawn = figure(size * across * times, (size * shape[0] / shape[1] + 0.2) * rows + 0.3)
    axes = list(drawn.subplots(rows, across * times, squeeze=False).ravel())
    for axis in axes:
        axis.set_axis_off()
    return drawn, axes[: count * times]


def show(axis, image, heat=None):
    """Draws an image, `(height, width, channels)`, 0..255, and a map, `(rows, columns)`, laid over it."""
    image = np.asarray(image)
    extent = (0, image.shape[1], image.shape[0], 0)
    axis.imshow(picture(image), cmap="gray", vmin=0, vmax=1, extent=extent)
    if heat is not None:
        axis.imshow(heat, cmap="inferno", alpha=0.65, extent=extent, interpolation="bilinear")


def picture(image):
    """Returns an image's pixels, 0 to 1: its three channels, or the mean of another number of them."""
    image = np.asarray(image, "float32") / 255
    return image if image.shape[-1] == 3 else image.mean(-1)


def painted(image, heat=None, side=224):
    """Returns what `show` draws as pixels of its own, for pages without matplotlib.

    Args:
        image: Array, `(height, width, channels)`, 0..255.
        heat: A map, `(rows, columns)`, or `None`.
        side: Pixels of the longer side.

    Returns:
        uint8 array, `(rows, columns, 3)`.
    """
    from matplotlib import colormaps
    from PIL import Image

    pixels = picture(image)
    pixels = np.repeat(pixels[..., None], 3, -1) if pixels.ndim == 2 else pixels
    scale = side / max(pixels.shape)
    size = [max(round(length * scale), 1) for length in pixels.shape[1::-1]]
    enlarge = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX
    pixels = Image.fromarray(np.uint8(255 * pixels)).resize(size, enlarge)
    if heat is None:
        return np.asarray(pixels)
    heat = np.asarray(heat, "float32")
    heat = (heat - heat.min()) / max(np.ptp(heat), 1e-12)
    heat = np.asarray(Image.fromarray(heat).resize(size, Image.Resampling.BILINEAR)).clip(0, 1)
    return np.uint8(255 * 0.65 * colormaps["inferno"](heat)[..., :3] + 0.35 * np.asarray(pixels))


def images(values, **counted):
    """Returns a batch of pixels, of which there are as many as of each named list that is given."""
    values = checks.pixels(values)
    for name, others in counted.items():
        count = len(others) if hasattr(others, "__len__") else repr(others)
        if others is not None and count != len(values):
            raise ValueError(f"Every image has one of `{name}`. Received: {len(values)} images and {count} {name}")
    return values


def names(class_names, count):
    """Returns a text for each of some classes: their names, or their numbers."""
    if class_names is None:
        return [str(i) for i in range(count)]
    if len(class_names) != count:
        raise ValueError(f"{count} classes have as many names. Received: {len(class_names)} class_names")
    return [words(name) for name in class_names]


def words(text):
    """Returns a text that is drawn as it is: matplotlib takes what stands between bare dollars for a formula."""
    return re.sub(r"(?<!\\)\$", r"\$", str(text))
