"""Figures of which words attend to which."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = 0.16  # inches of a word
ACROSS = 4  # matrices in a row


def plot_word_maps(
    maps: Sequence[np.ndarray],
    rows: Sequence[Sequence[str]],
    columns: Sequence[Sequence[str]],
    titles: Sequence[str] | None = None,
) -> "Figure":
    """Draws matrices of words by words: which word (row) attends to which (column).

    Args:
        maps: List of arrays, `(words, words)` or larger, such as a head of `keras_vit.attention_maps`, or of
            `keras_vit.explain.attention_over_source`, or the mean of several. What is beyond the words is left out.
        rows: For each matrix a list of the words that attend.
        columns: For each matrix a list of the words that are attended to.
        titles: A text for each matrix, or `None`.

    Returns:
        A `matplotlib.figure.Figure`. Colors begin at 0, and end at the maximum of each matrix.

    Raises:
        ValueError: If the numbers of matrices, lists of words and titles differ, or a matrix is smaller than its words.
    """
    maps = [np.asarray(each) for each in maps]
    titles = [""] * len(maps) if titles is None else titles
    if not maps or not len(maps) == len(rows) == len(columns) == len(titles):
        counts = ", ".join(map(str, map(len, (maps, rows, columns, titles))))
        raise ValueError(f"There must be as many matrices, rows, columns and titles. Received: {counts}")
    for each, words in zip(maps, zip(rows, columns)):
        need = tuple(map(len, words))
        if each.ndim != 2 or 0 in need or any(have < count for have, count in zip(each.shape, need)):
            raise ValueError(f"A matrix of these words must be at least {need}. Received: shape={each.shape}")
    across = min(len(maps), ACROSS)
    down = -(-len(maps) // across)
    wide, high = (CELL * max(map(len, words)) + 0.6 for words in (columns, rows))
    figure = canvas.figure(max(wide, 1.6) * across, (max(high, 1.2) + 0.2) * down)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis, each, down_words, across_words, title in zip(axes, maps, rows, columns, titles):
        axis.imshow(each[: len(down_words), : len(across_words)], cmap="inferno", vmin=0)
        axis.set_xticks(range(len(across_words)), across_words, fontsize=7)
        axis.set_yticks(range(len(down_words)), down_words, fontsize=7)
        axis.tick_params(length=0)
        if max(map(len, across_words)) > 1:
            axis.tick_params(axis="x", labelrotation=90)
        axis.set_title(title, fontsize=8)
    for axis in axes[len(maps) :]:
        axis.set_axis_off()
    return figure
