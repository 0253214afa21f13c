"""Boxes of pictures that are larger than the detector: found in overlapping tiles, and joined."""

import numpy as np

from keras_vit.models.box_outputs import EDGES, likely
from keras_vit.tasks.in_tiles import finite, fitted, tile_of
from keras_vit.utils.seams import joined
from keras_vit.utils.tiles import outputs_of


def boxes_of(function, size, tiling, several=False):
    """Returns the function from pictures to their boxes, a list of float64 `(boxes, 4 + classes)`, best first.

    Edges are shares of the picture, as `Detect` returns them. Each box has the score of one class. There are as many as
    were found: up to `Detect.most` in each tile.

    Args:
        function: From images, `(batch, height, width, channels)`, to boxes and scores, `(batch, most, 4 + classes)`.
        size: `(height, width, channels)` of these images.
        tiling: As `InTiles.tiling` returns it.
        several: As in `likely`.
    """
    find = found_by(function, size, tiling, several)

    def of_picture(picture):
        found, corners, classes = find(picture)
        edges, labels, scores = joined(*found, corners, picture.shape[:2])
        boxes = np.zeros((len(edges), EDGES + classes))
        boxes[:, :EDGES] = edges / np.tile(picture.shape[:2], 2)
        boxes[np.arange(len(edges)), EDGES + labels] = scores
        return boxes

    return lambda pictures: [of_picture(picture) for picture in pictures]


def found_by(function, size, tiling, several=False):
    """Returns the function from a picture to what is found in its tiles, before it is joined.

    These are arrays of the edges of the boxes in pixels of the picture, `(boxes, 4)`, their classes, scores and tiles,
    `(boxes,)`; then the edges of all tiles, a list, and the number of classes. Arguments are those of `boxes_of`.
    """
    tile = tile_of(tiling, size)
    fit = fitted(function, tile, size)

    def find(picture):
        found, corners, classes, ends = [], [], 0, np.tile(picture.shape[:2], 2)
        outputs = outputs_of(fit, picture, (*tile, size[2]), tiling["overlap"], tiling["step"])
        for number, ((y, x), output) in enumerate(outputs):
            output, classes = finite(output).astype("float64"), output.shape[-1] - EDGES
            edges, labels, scores = likely(output, 0, several)
            edges = np.clip(edges * np.tile(tile, 2) + (y, x, y, x), 0, ends)
            seen = (scores > 0) & (edges[:, 2] > edges[:, 0]) & (edges[:, 3] > edges[:, 1])  # not beyond the picture
            found.append((edges[seen], labels[seen], scores[seen], np.full(seen.sum(), number)))
            corners.append((y, x, y + tile[0], x + tile[1]))
        return [*map(np.concatenate, zip(*found))], corners, classes

    return find
