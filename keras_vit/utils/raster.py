"""A picture in a file of which windows are read: any number of bands, at the file's own depth."""

import dataclasses
from collections.abc import Callable

import numpy as np

from keras_vit.utils import checks
from keras_vit.utils.images import TURNS, turned

NOTHING = (1, 1)  # the block of files in which nothing is to be decoded


@dataclasses.dataclass(frozen=True)
class Raster:
    """A picture in a file. Nothing but its header is in memory, and no file is open between two calls of `read`.

    Attributes:
        shape: `(height, width, bands)`.
        dtype: NumPy type of the values, in the machine's order of bytes.
        window: Function of `(top, left, height, width)` that `read` calls with a window inside the picture.
        block: `(height, width)` of what is decoded at once: a tile, a strip, or the whole picture; `NOTHING` of what is
            not compressed, which is read row by row.
        names: Names of the bands, if the file has them; else empty.
        no_data: The value by which the file says that a pixel is unknown, or `None`.
        orientation: That of EXIF, 1 to 8, from which the picture was turned to be upright.
    """

    shape: tuple[int, int, int]
    dtype: np.dtype
    window: Callable
    block: tuple[int, int]
    names: tuple[str, ...] = ()
    no_data: float | None = None
    orientation: int = 1

    def read(self, top, left, height, width):
        """Returns the values of a window, `(height, width, bands)`, of `dtype`. Only what it needs is decoded.

        Several threads may read at once.

        Args:
            top, left: Its first row and column.
            height, width: Its size in pixels.

        Raises:
            ValueError: If the window is not inside the picture, or the file cannot be decoded.
        """
        checks.whole(top=top, left=left)
        checks.positive(height=height, width=width)
        if top + height > self.shape[0] or left + width > self.shape[1]:
            raise ValueError(
                f"A window must be inside the picture of {self.shape[0]} x {self.shape[1]} pixels. Received: "
                f"top={top}, left={left}, height={height}, width={width}"
            )
        return self.window(int(top), int(left), int(height), int(width))

    def whole(self):
        """Returns all values, `(height, width, bands)`."""
        return self.read(0, 0, *self.shape[:2])


def upright(raster, number):
    """Returns a raster turned from an orientation of EXIF, 1 to 8; of another number, as it is."""
    if not isinstance(number, int) or not 1 < number <= len(TURNS):
        return raster
    swapped, down, right = TURNS[number - 1]
    stored, shape, block = raster.window, raster.shape, raster.block
    if swapped:
        shape, block = (shape[1], shape[0], shape[2]), block[::-1]

    def window(top, left, height, width):
        top = top if down == 1 else shape[0] - top - height
        left = left if right == 1 else shape[1] - left - width
        box = (left, top, width, height) if swapped else (top, left, height, width)
        return np.ascontiguousarray(turned(stored(*box), number))

    return dataclasses.replace(raster, shape=shape, block=block, window=window, orientation=number)
