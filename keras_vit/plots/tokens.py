"""Figures of tokens by depth."""

from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_depth(similarity: np.ndarray, norms: np.ndarray, num_prefix: int = 0) -> "Figure":
    """Draws the cosine similarity of patch tokens, and the norms of all tokens, by depth.

    Args:
        similarity: Array, `(layers + 1, batch)`, as `keras_vit.explain.token_similarity` returns.
        norms: Array, `(layers + 1, batch, tokens)`, as `keras_vit.explain.token_norms` returns.
        num_prefix: Number of prefix tokens before the patches; they get their own line.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    similarity, norms = np.asarray(similarity), np.asarray(norms)
    depth = np.arange(len(norms))
    prefix, patches = (part.reshape(len(depth), -1) for part in np.split(norms, [num_prefix], axis=2))
    figure = canvas.figure(8, 3.2)
    left, right = figure.subplots(1, 2)
    left.plot(depth, similarity.mean(1), color=canvas.COLORS[0], label="mean over images")
    left.fill_between(
        depth, similarity.min(1), similarity.max(1), color=canvas.COLORS[0], alpha=0.2, lw=0, label="range over images"
    )
    left.set(ylabel="cosine similarity of patch tokens", ylim=(min(0, similarity.min()), 1.02))
    low, middle, high = np.percentile(patches, [5, 50, 95], axis=1)
    right.plot(depth, middle, color=canvas.COLORS[0], label="patches, median")
    right.fill_between(depth, low, high, color=canvas.COLORS[0], alpha=0.2, lw=0, label="5 % to 95 %")
    right.plot(depth, patches.max(1), ":", color=canvas.COLORS[1], label="patches, maximum")
    if num_prefix:
        right.plot(depth, prefix.mean(1), "--", color=canvas.COLORS[2], label="prefix tokens, mean")
    right.set(ylabel="token norm", yscale="log")
    for axis in (left, right):
        axis.set(xlabel="after block (0: before the first)", xticks=depth[:: 1 + len(depth) // 16])
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    return figure
