"""Figure of images with their texts and what was found instead."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import lettering
from keras_vit.plots.pictures import plot_pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = 60  # of a text, at most


def plot_pairs(
    images: np.ndarray, texts: Sequence[str], found: Sequence[str], ranks: Sequence[int], across: int = 4
) -> "Figure":
    """Draws each image with its own text, the text's place, and the text that was found first besides.

    Args:
        images: Array, `(n, height, width, channels)`, 0..255.
        texts: The text of each image.
        found: The nearest other text of each.
        ranks: Number of texts that are nearer than an image's own.
        across: Images per row.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If there is no image, or the numbers of texts differ.
    """
    if not len(images) == len(texts) == len(found) == len(ranks):
        raise ValueError(
            "Each image must have a text, a found one and a rank. "
            f"Received: {len(images)} images, {len(texts)} texts, {len(found)} found, {len(ranks)} ranks"
        )
    short = [[lettering.short(text, LETTERS) for text in some] for some in (texts, found)]
    lines = [f"{own} ({1 + rank}), {'first' if rank else 'then'}: {other}" for own, other, rank in zip(*short, ranks)]
    return plot_pictures(images, lines, across)
