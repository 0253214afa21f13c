"""Masks as files, of a few rows at a time."""

import numpy as np

SIDE = 256  # pixels of a TIFF's tiles


def write_tiff(path, shape, rows):
    """Writes a mask as a tiled TIFF, compressed by Deflate, a row of tiles at a time.

    Args:
        path: The file.
        shape: `(height, width)`.
        rows: Iterable of some rows each, uint8 `(rows, width)`, from top to bottom.

    Raises:
        OSError: If writing fails.
    """
    import tifffile

    columns = -(-shape[1] // SIDE) * SIDE

    def tiles():
        for band in _bands(rows, shape):
            padded = np.zeros((SIDE, columns), "uint8")
            padded[: len(band), : shape[1]] = band
            for left in range(0, columns, SIDE):
                yield padded[:, left : left + SIDE]

    options = {"shape": tuple(shape), "dtype": "uint8", "tile": (SIDE, SIDE), "photometric": "minisblack"}
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(tiles(), compression="adobe_deflate", predictor=False, metadata=None, maxworkers=1, **options)


def _bands(rows, shape):
    """Yields `SIDE` rows each, the rest at the end."""
    waiting, count = [], 0
    for some in rows:
        waiting.append(some)
        count += len(some)
        while count >= SIDE:
            every = np.concatenate(waiting)
            yield every[:SIDE]
            waiting, count = [every[SIDE:]], count - SIDE
    if count:
        yield np.concatenate(waiting)
