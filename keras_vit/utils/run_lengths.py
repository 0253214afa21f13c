"""Masks as COCO stores them: lengths of runs of pixels, column by column, packed by pycocotools."""

import numpy as np


def run_lengths(mask):
    """Returns the run-length encoding of a mask, `(rows, columns)` of booleans: a dictionary.

    Its `"size"` is `[rows, columns]`, its `"counts"` are bytes. A mask takes about a byte for each run.
    """
    from pycocotools import mask as coco

    return coco.encode(np.asfortranarray(mask, "uint8"))


def of_map(numbers, wanted):
    """Yields the run-length encoding of the pixels of each wanted number in a map, integers `(rows, columns)`."""
    columns = np.asfortranarray(numbers)  # once: so are the masks then
    return (run_lengths(columns == number) for number in wanted)


def written(runs):
    """Returns a run-length encoding with its counts as text, which JSON can hold."""
    return {"size": [int(side) for side in runs["size"]], "counts": runs["counts"].decode("ascii")}
