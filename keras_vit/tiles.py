"""A function of images of one size, applied to images of any size: by overlapping tiles, whose outputs are blended."""

import itertools
import math

import numpy as np

OVERLAP = 1 / 4  # of a tile's side, at least, with the next one
AT_ONCE = 2**18  # pixel values that the function is given at once, or one tile


def tiled(function, size, overlap=OVERLAP):
    """Returns the function for images of any size. Its outputs are images too, at the same size or larger by a factor.

    Images smaller than a tile are continued by their last pixels. Where tiles overlap, the weight of each falls
    linearly to its edge, so that there is no seam. Besides an image, its output and their weights, memory holds a few
    tiles.

    Args:
        function: From images, float32 `(batch, height, width, channels)`, to outputs, an array of
            `(batch, scale * height, scale * width, channels)`.
        size: `(height, width, channels)` of the images that it takes.
        overlap: Share of a tile's side.
    """
    at_once = max(AT_ONCE // math.prod(size), 1)

    def one(image):
        sides = image.shape[:2]
        missing = [max(tile - side, 0) for tile, side in zip(size, sides)]
        image = np.pad(image, [(0, missing[0]), (0, missing[1]), (0, 0)], "edge")
        corners = list(itertools.product(*map(_starts, image.shape[:2], size[:2], (overlap, overlap))))
        total = None
        for first in range(0, len(corners), at_once):
            some = corners[first : first + at_once]
            tiles = np.stack([image[y : y + size[0], x : x + size[1]] for y, x in some])
            if len(some) < at_once < len(corners):  # as many each time, since another number may compile again
                tiles = np.concatenate([tiles, tiles[:1].repeat(at_once - len(some), 0)])
            outputs = function(tiles)[: len(some)]
            if total is None:
                scale = outputs.shape[1] // size[0]
                total = np.zeros((*(scale * side for side in image.shape[:2]), outputs.shape[-1]), "float32")
                weights = np.zeros((*total.shape[:2], 1), "float32")
                ramp = _ramp(outputs.shape[1], overlap)[:, None] * _ramp(outputs.shape[2], overlap)
                ramp = ramp[..., None].astype("float32")
            for (y, x), output in zip(some, outputs):
                place = np.s_[scale * y : scale * y + len(output), scale * x : scale * x + output.shape[1]]
                total[place] += ramp * output
                weights[place] += ramp
        total /= weights
        return total[: scale * sides[0], : scale * sides[1]]

    def of_any_size(images):
        fits = tuple(images.shape[1:3]) == tuple(size[:2])
        return function(images) if fits else np.stack([one(image) for image in images])

    return of_any_size


def _starts(side, tile, overlap):
    """Returns where the tiles of a line begin: as few as cover it, evenly spread."""
    count = 1 + math.ceil((side - tile) / max(tile * (1 - overlap), 1))
    return np.linspace(0, side - tile, count).round().astype(int).tolist()


def _ramp(side, overlap):
    """Returns the weights along a side: they rise to 1 over the overlap, and fall at the end."""
    to_edge = np.minimum(np.arange(side), np.arange(side)[::-1]) + 0.5
    return np.minimum(to_edge / max(side * overlap, 1), 1)
