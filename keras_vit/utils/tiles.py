"""A function of images of one size, applied to images of any size: by overlapping tiles, whose outputs are blended.

A large picture need not be in memory: an object with `shape`, `(height, width, channels)`, and `read(top, left, height,
width)`, which returns the pixels of a window, takes the place of its array.
"""

import itertools
import math

import numpy as np

from keras_vit.utils import progress
from keras_vit.utils.images import MOST_PIXELS

OVERLAP = 1 / 4  # of a tile's side, at least, with the next one
AT_ONCE = 2**18  # pixel values that the function is given at once, or one tile
MANY = 64  # tiles of a picture from which on it is shown how many are done


def tiled(function, size, overlap=OVERLAP, finish=None, beside=None, step=None):
    """Returns the function for images of any size. Its outputs are images too, at the same size or larger by a factor.

    Images smaller than a tile are continued by their last pixels. Where tiles overlap, the weight of each falls
    linearly to its edge, so that there is no seam. Besides an image and its output, memory holds a few tiles and one
    row of them. It takes a list of pictures with `read` too; of one over `MOST_PIXELS`, it returns a `LargeMask`.

    Args:
        function: From images, `(batch, height, width, channels)`, to outputs, an array of
            `(batch, scale * height, scale * width, channels)`. Integers are given to it as float32. It may take a
            dictionary, as the function that is returned then does: `"images"`, and arrays with a row for each image.
        size: `(height, width, channels)` of the images that it takes.
        overlap: Share of a tile's side.
        finish: Function of some rows of an output, float32 `(rows, columns, channels)`, to what is kept of them, such
            as bytes; `None` to keep them as they are.
        beside: Function of an image and the dictionary of its other arrays, to a function from the place of a tile, its
            first row and column, to the arrays of this tile; `None` where all tiles have those of the image.
        step: As in `starts`.
    """

    def of_any_size(images):
        others = {name: np.asarray(rows) for name, rows in images.items()} if isinstance(images, dict) else {}
        images = others.pop("images", images)
        sides = images[0].shape[:2]
        if isinstance(images, np.ndarray) and sides == tuple(size[:2]) and not (beside and others):
            found = _run(function, images, others)
            return found if finish is None else np.stack([finish(output) for output in found])

        def finished(i):
            """Yields the rows of the output of an image, without those of what continues it."""
            first, own = 0, {name: rows[i : i + 1] for name, rows in others.items()}
            missing = [(0, max(tile - side, 0)) for tile, side in zip(size, sides)]
            image = np.pad(images[i], [*missing, (0, 0)], "edge") if beside and np.any(missing) else images[i]
            for rows in rows_of(function, image, size, overlap, step, own, beside):
                scale = rows.shape[1] // max(sides[1], size[1])
                rows = rows[: scale * sides[0] - first, : scale * sides[1]]
                first += len(rows)
                yield scale * sides[0], rows if finish is None else finish(rows)

        if not isinstance(images, np.ndarray) and math.prod(sides) > MOST_PIXELS:
            return [LargeMask(sides, (rows for _, rows in finished(i))) for i in range(len(images))]
        found = None
        for i in range(len(images)):
            first = 0
            for height, rows in finished(i):
                if found is None:
                    found = np.empty((len(images), height, *rows.shape[1:]), rows.dtype)
                found[i, first : first + len(rows)] = rows
                first += len(rows)
        return found

    return of_any_size


class LargeMask:
    """Class indices of a picture that is too large for memory, uint8: rows are computed when they are asked for, once.

    Args:
        shape: `(height, width)`.
        rows: Iterator of some rows each, from top to bottom.
    """

    def __init__(self, shape, rows):
        self.shape = tuple(shape)
        self.rows = rows
        self.counts = np.zeros(256, "int64")  # pixels of each class, in the rows until now

    def __iter__(self):
        """Yields some rows at a time, `(rows, width)`."""
        for rows in self.rows:
            self.counts += np.bincount(rows.ravel(), minlength=256)
            yield rows

    def counted(self):
        """Returns the number of pixels of each class, `(256,)`, once all rows are computed."""
        for _ in self:
            pass
        return self.counts


def rows_of(function, picture, size, overlap=OVERLAP, step=None, others=None, beside=None):
    """Yields the blended rows of a picture's output from top to bottom, as soon as no other tile changes them.

    They are float32 `(rows, scale * width, channels)`, as many as one tile has at most. What is smaller than a tile is
    continued, and so is its output. Arguments are those of `tiled`.
    """
    top, total = 0, None
    width = max(picture.shape[1], size[1])
    for (y, x), output in outputs_of(function, picture, size, overlap, step, others, beside):
        if total is None:
            scale = output.shape[0] // size[0]
            total = np.zeros((len(output), scale * width, output.shape[-1]), "float32")
            weights = np.zeros((*total.shape[:2], 1), "float32")
            ramp = _ramp(output.shape[0], overlap)[:, None] * _ramp(output.shape[1], overlap)
            ramp = ramp[..., None].astype("float32")
        if y > top:
            rows_done, top = scale * (y - top), y
            yield total[:rows_done] / weights[:rows_done]
            for array in (total, weights):
                array[:-rows_done] = array[rows_done:].copy()
                array[-rows_done:] = 0
        place = np.s_[scale * x : scale * x + output.shape[1]]
        total[:, place] += ramp * output
        weights[:, place] += ramp
    yield total / weights


def outputs_of(function, picture, size, overlap=OVERLAP, step=None, others=None, beside=None):
    """Yields the place of each tile of a picture, its first row and column, and its output, row by row of tiles.

    Arguments are those of `tiled`; `others` are the other arrays of the picture, with a row each.
    """
    others, at_once = others or {}, max(AT_ONCE // math.prod(size), 1)
    parts = beside(picture, others) if beside else lambda y, x: others
    corners = list(itertools.product(*(starts(*pair, overlap, step) for pair in zip(picture.shape[:2], size[:2]))))
    batches = (corners[first : first + at_once] for first in range(0, len(corners), at_once))
    if len(corners) >= MANY:
        batches = progress.counted(batches, len(corners), "tiles", after=3.0)
    for some in batches:
        tiles = np.stack([window(picture, y, x, size) for y, x in some])
        if len(some) < at_once < len(corners):  # as many each time, since another number may compile again
            tiles = np.concatenate([tiles, tiles[:1].repeat(at_once - len(some), 0)])
        found = [parts(*corner) for corner in some]
        found += found[:1] * (len(tiles) - len(found))
        each = {name: np.concatenate([one[name] for one in found]) for name in others}
        yield from zip(some, _run(function, tiles, each))


def starts(side, tile, overlap, step=None):
    """Returns where the tiles of a line begin, as few as cover it: evenly spread, or all but the last by equal steps.

    Args:
        side: Pixels of the line.
        tile: Pixels of a tile; one is enough for a shorter line.
        overlap: Share of a tile, at least, that it has in common with the next one.
        step: Pixels at whose multiples tiles begin, such as those of a patch: a model then sees the same patches in
            each. As the last tile ends with the line, it alone may begin elsewhere. `None` to spread them evenly.
    """
    last = max(side - tile, 0)
    if step is None:
        count = 1 + math.ceil(last / max(tile * (1 - overlap), 1))
        return np.linspace(0, last, count).round().astype(int).tolist()
    stride = max(int(tile * (1 - overlap)) // step, 1) * step
    return [*range(0, last, stride), last]


def _run(function, tiles, others):
    tiles = tiles if np.issubdtype(tiles.dtype, np.floating) else tiles.astype("float32")
    return function({"images": tiles, **others} if others else tiles)


def window(picture, y, x, size):
    """Returns a tile of a picture, an array or what has `read`; beyond its edges, its last pixels are repeated."""
    height, width = (min(tile, side - at) for tile, side, at in zip(size, picture.shape, (y, x)))
    read = getattr(picture, "read", lambda y, x, height, width: picture[y : y + height, x : x + width])
    pixels = read(y, x, height, width)
    missing = [(0, size[0] - height), (0, size[1] - width), (0, 0)]
    return np.pad(pixels, missing, "edge") if np.any(missing) else pixels


def _ramp(side, overlap):
    """Returns the weights along a side: they rise to 1 over the overlap, and fall at the end."""
    to_edge = np.minimum(np.arange(side), np.arange(side)[::-1]) + 0.5
    return np.minimum(to_edge / max(side * overlap, 1), 1)
