"""Patch tokens as colors: their first three principal components."""

from typing import Any

import keras
import numpy as np

from keras_vit.frozen.embedder import Embedder
from keras_vit.utils import checks

FEWEST = 4  # patches of a foreground, for three components
EDGES = (1, 99)  # percentiles that become 0 and 1


def pca_image(
    model: keras.Model | str, images: Any, *, foreground: bool = True, bad_images: str = "raise"
) -> np.ndarray:
    """Paints each patch by the first three principal components of its token, over all images together.

    Patches with the same color have similar features, also in different images. Oquab et al. 2023 (DINOv2,
    arXiv:2304.07193), section 7.5: the first component of all patches divides foreground from background, those of the
    foreground are the colors.

    Args:
        model: A model, or what `from_pretrained` takes.
        images: Image files or other images that `preprocess` takes.
        foreground: Whether to leave the background black. The foreground is the side of the first component that fewer
            patches at the borders are on.
        bad_images: `"raise"` for an image that cannot be read, or `"skip"`: it is named in a warning, and its colors
            are NaN.

    Returns:
        float32 array, `(images, rows, columns, 3)`, red, green and blue from 0 to 1. `plots.plot_pca` draws it.

    Raises:
        ValueError: As `preprocess`; for features that are not finite, fewer than four patches, or all alike.
    """
    from sklearn.decomposition import PCA

    checks.switch(foreground=foreground)
    every = Embedder(model, tokens=True)(images, bad_images)  # (images, rows, columns, width)
    readable = np.isfinite(every).all((1, 2, 3))
    tokens = every[readable]
    flat = tokens.reshape(-1, tokens.shape[-1])
    if len(flat) < FEWEST or tokens.shape[-1] < 3 or np.ptp(flat, axis=0).max() < 1e-12:
        raise ValueError(
            f"Three components need {FEWEST} patches with different features, of three channels or more. "
            f"Received: features of shape {tokens.shape}"
        )
    inside = np.ones(tokens.shape[:3], bool)
    if foreground:
        first = PCA(1, random_state=0).fit_transform(flat).reshape(inside.shape)
        border = np.ones(inside.shape[1:], bool)
        border[1:-1, 1:-1] = False
        inside = first > 0 if np.mean(first[:, border] > 0) <= 0.5 else first < 0
        if inside.sum() < FEWEST:
            inside[:] = True
    components = PCA(3, random_state=0).fit_transform(tokens[inside])
    low, high = np.percentile(components, EDGES, axis=0)
    colors = np.zeros((*inside.shape, 3), "float32")
    colors[inside] = np.clip((components - low) / np.maximum(high - low, 1e-12), 0, 1)
    result = np.full((*every.shape[:3], 3), np.nan, "float32")
    result[readable] = colors
    return result
