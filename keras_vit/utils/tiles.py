"""A function of images of one size, applied to images of any size: by overlapping tiles, whose outputs are blended."""

import itertools
import math

import numpy as np

OVERLAP = 1 / 4  # of a tile's side, at least, with the next one
AT_ONCE = 2**18  # pixel values that the function is given at once, or one tile


def tiled(function, size, overlap=OVERLAP, finish=None, beside=None):
    """Returns the function for images of any size. Its outputs are images too, at the same size or larger by a factor.

    Images smaller than a tile are continued by their last pixels. Where tiles overlap, the weight of each falls
    linearly to its edge, so that there is no seam. Besides an image and its output, memory holds a few tiles and one
    row of them.

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
    """
    at_once = max(AT_ONCE // math.prod(size), 1)

    def run(tiles, others):
        tiles = tiles if np.issubdtype(tiles.dtype, np.floating) else tiles.astype("float32")
        return function({"images": tiles, **others} if others else tiles)

    def outputs(image, corners, others):
        parts = beside(image, others) if beside else lambda y, x: others
        for first in range(0, len(corners), at_once):
            some = corners[first : first + at_once]
            tiles = np.stack([image[y : y + size[0], x : x + size[1]] for y, x in some])
            if len(some) < at_once < len(corners):  # as many each time, since another number may compile again
                tiles = np.concatenate([tiles, tiles[:1].repeat(at_once - len(some), 0)])
            found = [parts(*corner) for corner in some]
            found += found[:1] * (len(tiles) - len(found))
            each = {name: np.concatenate([one[name] for one in found]) for name in others}
            yield from zip(some, run(tiles, each))

    def rows_of(image, others):
        """Yields the rows of an output from top to bottom, as soon as no other tile changes them."""
        top, total = 0, None
        corners = list(itertools.product(*map(_starts, image.shape[:2], size[:2], (overlap, overlap))))
        for (y, x), output in outputs(image, corners, others):
            if total is None:
                scale = output.shape[0] // size[0]
                total = np.zeros((len(output), scale * image.shape[1], output.shape[-1]), "float32")
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

    def of_any_size(images):
        others = {name: np.asarray(rows) for name, rows in images.items()} if isinstance(images, dict) else {}
        images = others.pop("images", images)
        sides = images.shape[1:3]
        if tuple(sides) == tuple(size[:2]) and not (beside and others):
            found = run(images, others)
            return found if finish is None else np.stack([finish(output) for output in found])
        missing = [(0, max(tile - side, 0)) for tile, side in zip(size, sides)]
        found = None
        for i, image in enumerate(images):
            first, own = 0, {name: rows[i : i + 1] for name, rows in others.items()}
            for rows in rows_of(np.pad(image, [*missing, (0, 0)], "edge") if np.any(missing) else image, own):
                scale = rows.shape[1] // (sides[1] + missing[1][1])
                rows = rows[: scale * sides[0] - first, : scale * sides[1]]
                rows = rows if finish is None else finish(rows)
                if found is None:
                    found = np.empty((len(images), scale * sides[0], *rows.shape[1:]), rows.dtype)
                found[i, first : first + len(rows)] = rows
                first += len(rows)
        return found

    return of_any_size


def _starts(side, tile, overlap):
    """Returns where the tiles of a line begin: as few as cover it, evenly spread."""
    count = 1 + math.ceil((side - tile) / max(tile * (1 - overlap), 1))
    return np.linspace(0, side - tile, count).round().astype(int).tolist()


def _ramp(side, overlap):
    """Returns the weights along a side: they rise to 1 over the overlap, and fall at the end."""
    to_edge = np.minimum(np.arange(side), np.arange(side)[::-1]) + 0.5
    return np.minimum(to_edge / max(side * overlap, 1), 1)
