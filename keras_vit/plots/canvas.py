"""What all figures share: size, palette, tiles, images and names."""

import functools
import io

import numpy as np

from keras_vit.models.outputs import distinct
from keras_vit.plots import lettering
from keras_vit.utils import checks
from keras_vit.utils.value_range import to_bytes

# Okabe and Ito's palette, which color-blind people can tell apart, without its black and yellow.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

FLATTEST, TALLEST = 0.1, 6  # height by width of a tile: a strip of pixels would be a figure that fills the memory
FRAMES = 4  # of a clip in a picture, at most
INK = "#010101"  # black on a light ground: a page turns pure black into its text color
PAPER = "#fefefe"  # white that a page turns into its ground


def figure(width, height):
    """Returns an empty figure, sizes in inches, which a notebook shows."""
    return _figure_class()(figsize=(width, height), layout="constrained", dpi=120)


@functools.cache
def _figure_class():
    import matplotlib
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that a notebook shows without pyplot, which would keep every figure in memory."""

        def _repr_png_(self):
            written = io.BytesIO()
            self.savefig(written, format="png")
            return written.getvalue()

        def draw(self, renderer):
            with lettering.in_all_scripts(told=matplotlib.rcParams["svg.fonttype"] != "none"):
                lettering.add_fallbacks(self)
                super().draw(renderer)

        def __reduce__(self):  # pickle does not find a class inside a function
            return Figure, (), self.__getstate__()

    return NotebookFigure


def tiles(count, across, shape, size=1.6, times=1, titles=None, most=2, points=lettering.TITLE):
    """Returns a figure, and a list of axes without frames, in rows of tiles.

    Args:
        count: Number of tiles.
        across: Tiles per row, at most.
        shape: `(height, width, ...)` of an image.
        size: Width of an image in inches.
        times: Images per tile, side by side.
        titles: A text over each tile, or `None`; what needs more lines than `most` is cut.
        most: Lines of a title.
        points: Their size.
    """
    across = max(1, min(across, count))
    size = max(size, 4.8 / (across * times))  # wide enough for a heading
    rows = -(-count // across)
    room = size * times - 0.12
    lines = [lettering.fitted(text, room, points, most) for text in titles or ()]
    above = lettering.height(max([text.count("\n") + 1 for text in lines if text] or [0]), points) + 0.2
    drawn = figure(size * across * times, (size * tallness(shape) + above) * rows + 0.3)
    axes = list(drawn.subplots(rows, across * times, squeeze=False).ravel())
    for axis in axes:
        axis.set_axis_off()
    for text, axis in zip(lines, axes[::times]):
        axis.set_title(text, fontsize=points, loc="left")
    return drawn, axes[: count * times]


def tallness(shape):
    """Returns the height of a tile by its width: that of an image, `(height, width, ...)`, within bounds."""
    return min(max(shape[0] / shape[1], FLATTEST), TALLEST)


def bars(names, count):
    """Returns a figure for a bar of each name, the names left of them, and its axes."""
    names = max(map(lettering.width, names), default=0)
    drawn = figure(4.2 + max(names, 1.8), 1 + 0.25 * max(count, 1))
    return drawn, drawn.subplots()


def end_at_one(axis):
    """Ends a horizontal axis of shares at 1, with a little room for the marker there."""
    low = axis.get_xlim()[0]
    axis.set_xlim(low, 1.02)
    axis.set_xticks([tick for tick in axis.get_xticks() if low <= tick <= 1])
    axis.set_xlim(low, 1.02)


def ink(color):
    """Returns the color of text on a ground: white, or nearly black, whichever has more contrast."""
    from matplotlib.colors import to_rgb

    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return "white" if 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] < 0.1798 else INK


def show(axis, image, heat=None, limits=(None, None)):
    """Draws an image, `(height, width, channels)`, 0..255, and on top of it a heat map, `(rows, columns)`.

    `limits` are the values with the first and the last color; those of the map if they are `None`.
    """
    image = np.asarray(image)
    extent = (0, image.shape[1], image.shape[0], 0)
    axis.imshow(picture(image), cmap="gray", vmin=0, vmax=1, extent=extent)
    if heat is not None:
        low, high = limits
        axis.imshow(heat, "inferno", alpha=0.65, extent=extent, interpolation="bilinear", vmin=low, vmax=high)


def picture(image):
    """Returns an image's pixels, 0 to 1: the first three channels, or the mean of fewer."""
    image = np.asarray(image, "float32") / 255
    return image[..., :3] if image.shape[-1] >= 3 else image.mean(-1)


def painted(image, heat=None, side=224):
    """Returns what `show` draws as an array of pixels.

    Args:
        image: Array, `(height, width, channels)`, 0..255; of a clip `(frames, height, width, channels)`, of which four
            frames at most are drawn side by side.
        heat: A heat map, `(rows, columns)`, or `None`; of a clip `(steps, rows, columns)`.
        side: Pixels of the longer side; of a clip that of two frames.

    Returns:
        uint8 array, `(rows, columns, 3)`.
    """
    if np.ndim(image) == 4:
        frames = np.linspace(0, len(image) - 1, min(len(image), FRAMES)).round().astype(int)
        return side_by_side([framed(image, heat, i, side // 2) for i in frames])
    heat = None if heat is None else _of_one(np.asarray(heat, "float32"))
    return _laid(image, heat, side)


def framed(clip, heat, place, side):
    """Returns one frame of a clip as `painted` draws images, with the colors of the whole clip's heat map."""
    if heat is None:
        return _laid(clip[place], None, side)
    return _laid(clip[place], _of_one(np.asarray(heat, "float32"))[place * len(heat) // len(clip)], side)


def _of_one(heat):
    return (heat - heat.min()) / max(np.ptp(heat), 1e-12)


def _laid(image, heat, side):
    """Returns an image of `side` pixels under a heat map from 0 to 1, if there is one."""
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
    heat = np.asarray(Image.fromarray(heat).resize(size, Image.Resampling.BILINEAR)).clip(0, 1)
    return np.uint8(255 * 0.65 * colormaps["inferno"](heat)[..., :3] + 0.35 * np.asarray(pixels))


def side_by_side(pictures, axis=1):
    """Returns pictures of one height as one, with white between: uint8 `(rows, columns, 3)`.

    With `axis=0` they are of one width, and one is below the other.
    """
    size = list(pictures[0].shape)
    size[axis] = max(size[axis] // 50, 1)
    gap = np.full(size, 255, "uint8")
    return np.concatenate([part for one in pictures for part in (gap, one)][1:], axis=axis)


def as_bytes(images, value_range):
    """Returns images of a range on the scale of 0 to 255; of an unknown range, from their lowest to their highest."""
    if value_range == checks.BYTES:
        return images
    value_range = value_range or (min(np.min(images), 0), max(np.max(images), 1))
    return np.clip(to_bytes(np.asarray(images, "float32"), value_range), 0, 255)


def images(values, value_range=checks.BYTES, **lists):
    """Checks a batch of pixels, and that each list which is not `None` has one entry for each image."""
    values = checks.pixels(values, value_range=value_range)
    for name, entries in lists.items():
        count = len(entries) if hasattr(entries, "__len__") else checks.shown(entries)
        if entries is not None and count != len(values):
            raise ValueError(
                f"`{name}` must have one entry for each image. Received: {len(values)} images and {count} {name}"
            )
    return values


def names(class_names, count):
    """Returns a text for each class: its name, or its number if `class_names` is `None`."""
    if class_names is None:
        return [str(i) for i in range(count)]
    if len(class_names) != count:
        raise ValueError(f"`class_names` must name each of {count} classes. Received: {len(class_names)} class_names")
    return list(distinct([lettering.words(name) for name in class_names]))


def classes(class_names, **labels):
    """Returns the classes' names and, for each of the lists of labels, class indices.

    Args:
        class_names: A text for each class; `None` for numbers or, where labels are texts, for those, sorted.
        labels: Class indices, or names of classes.

    Raises:
        ValueError: For labels that are neither, or outside the classes.
    """
    arrays = {name: np.asarray(values) for name, values in labels.items()}
    if all(array.ndim == 1 and len(array) and isinstance(array[0], str) for array in arrays.values()):
        known = sorted({str(one) for array in arrays.values() for one in array})
        known = known if class_names is None else [str(name) for name in class_names]
        place = {name: i for i, name in enumerate(known)}
        unknown = [str(one) for array in arrays.values() for one in array if str(one) not in place]
        if unknown or len(place) < len(known):
            raise ValueError(
                f"Labels that are texts must be among `class_names`, which all differ. Received: "
                f"{checks.shown(unknown[0] if unknown else known)}"
            )
        return names(known, len(known)), *(np.array([place[str(one)] for one in array]) for array in arrays.values())
    most = max(int(array.max(initial=0)) if array.dtype.kind in "ui" else 0 for array in arrays.values())
    count = most + 1 if class_names is None else len(class_names)
    texts = names(class_names, count)
    return texts, *(checks.class_indices(array, count, name=name) for name, array in arrays.items())
