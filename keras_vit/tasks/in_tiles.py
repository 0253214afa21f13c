"""Tasks whose pictures may be larger than their models: the option `tiles`."""

import dataclasses
import functools

import numpy as np

from keras_vit.models import anatomy
from keras_vit.models.inputs import image_shape
from keras_vit.utils import checks
from keras_vit.utils.resampling import resize_matrix
from keras_vit.utils.tiles import OVERLAP, tiled

DEFAULTS = {"size": None, "overlap": OVERLAP, "step": 1}
JOINS = {  # by what a task gives, for those who use an exported file
    "masks": "where tiles overlap, the mean of their logits, weighted by a ramp that rises to 1 over the overlap",
    "boxes": "of boxes of one class from different tiles, the best of those that are alike or inside one another",
}
MOST = 1 / 2  # overlap: with more, a place would be in three tiles of a line


class NotFiniteError(FloatingPointError, ValueError):
    """Says that a model returned NaN or infinity."""


def finite(output):
    """Returns an output as an array; raises NotFiniteError if a number is NaN or infinite."""
    output = np.asarray(output)
    if not np.isfinite(output).all():
        raise NotFiniteError("The model must return finite numbers. Received: NaN or infinity")
    return output


class InTiles:
    """Mixin for a task with a field `tiles`, which predicts and scores pictures at full size: `False`, `True` or a
    dictionary of `DEFAULTS`. Its method `in_tiles` does it.
    """

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.tiles, dict):
            check_tiling(f"{type(self).__name__}.tiles", self.tiling, self.tiles)

    @property
    def whole(self):
        """Whether pictures are predicted and scored at full size, in tiles."""
        return self.tiles is not False

    @property
    def tiling(self):
        """All options of `tiles`, defaults included."""
        return {**DEFAULTS, **(self.tiles if isinstance(self.tiles, dict) else {})}

    def tiles_facts(self, size):
        """Returns what a user of an exported file needs to know to use it on tiles, a dictionary of plain values.

        Args:
            size: `(height, width, channels)` of the images that the model takes.
        """
        return {**self.tiling, "size": [*tile_of(self.tiling, size)], "join": JOINS[self.gives]}

    def tiles_of(self, model):
        """Returns the options `tiles` by which tiles begin at the patches of a model; they are as they were without."""
        if not self.whole or self.tiling["step"] > 1:
            return {}
        return {"tiles": {**self.tiling, "step": _patch(model, tile_of(self.tiling, image_shape(model)))}}


def check_tiling(name, tiling, given, allowed=tuple(DEFAULTS)):
    """Raises ValueError for options of tiles that are unknown or out of range.

    Args:
        name: What they are called in messages.
        tiling: All options, defaults included.
        given: The options that the caller gave.
        allowed: Names of options.
    """
    for option, value in given.items():
        checks.one_of(f"an option of {name}", option, allowed)
        if option == "overlap" and not (isinstance(value, (int, float)) and 0 <= value <= MOST):
            raise ValueError(f"{name}.overlap must be a number from 0 to {MOST}. Received: {checks.shown(value)}")
        if option == "size" and value is not None:
            checks.pair(f"{name}.size", value)
    checks.positive(**{f"{name}.step": tiling["step"]})


def with_tiles(task, tiles):
    """Returns a task with another option `tiles`, checked; `None` for its own.

    Raises:
        ValueError: For a task that has none.
    """
    if tiles is None:
        return task
    if not isinstance(task, InTiles):
        ever = "always predicts in tiles" if task.whole else "does not predict in tiles"
        raise ValueError(
            f"{type(task).__name__} {ever}: `tiles` is for Detect and Segment. Received: tiles={checks.shown(tiles)}"
        )
    task = dataclasses.replace(task, tiles=tiles)
    task.check()
    return task


def at_full_size(task, function, size, finish=None):
    """Returns the function from whole pictures to a `whole` task's outputs: as the task does it, or blended pixels.

    Args:
        task: The task.
        function: From what the model takes, a batch, to outputs.
        size: `(height, width, channels)` of the images that the model takes.
        finish: Of a task of pixels: what to make of each few rows; see `tiled`.
    """
    if isinstance(task, InTiles):
        return task.in_tiles(function, size)
    return tiled(function, size, finish=finish, beside=task.beside and task.beside(size))


def tile_of(tiling, size):
    """Returns the `(height, width)` in pixels of a picture that a tile covers.

    Args:
        tiling: `InTiles.tiling`.
        size: `(height, width, channels)` of the images that the model takes.
    """
    wanted = tiling["size"]
    if wanted is None:
        return tuple(size[:2])
    if not isinstance(wanted, int):
        return tuple(wanted)
    return tuple(max(round(wanted * side / max(size[:2])), 1) for side in size[:2])


def fitted(function, tile, size):
    """Returns the function from tiles, `(batch, *tile, channels)`, to what a function of images of another size makes.

    They are resized bilinearly, with antialiasing, as in evaluation.
    """
    if tuple(tile) == tuple(size[:2]):
        return function
    return lambda tiles: function(resized(tiles, tuple(size[:2])))


def resized(maps, size):
    """Returns maps, `(batch, rows, columns, channels)`, at another size, float32."""
    rows, columns = (_matrix(*pair) for pair in zip(maps.shape[1:3], size))
    maps = np.tensordot(rows, np.asarray(maps, "float32"), (1, 1))  # (rows, batch, columns, channels)
    return np.tensordot(columns, maps, (1, 2)).transpose(2, 1, 0, 3)


@functools.lru_cache(16)
def _matrix(source, target):
    return resize_matrix(source, target, "bilinear-antialias").astype("float32")


def _patch(model, tile):
    """Returns the pixels of a picture from one patch to the next, if they are the same both ways and a whole number."""
    try:
        steps = {side / count for side, count in zip(tile, anatomy.grid(model))}
    except ValueError:  # a model without the layer
        return 1
    step = steps.pop()
    return int(step) if not steps and step == int(step) else 1
