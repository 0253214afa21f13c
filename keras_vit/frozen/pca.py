"""Patch tokens as colors: their first three principal components."""

import itertools
from typing import Any

import keras
import numpy as np

from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.patch_maps import PatchMaps, sampled
from keras_vit.preparing.preprocessing import listed
from keras_vit.utils import checks

FEWEST = 4  # patches of a foreground, for three components
EDGES = (1, 99)  # percentiles that become 0 and 1
SAMPLE = 100_000  # patches of images in tiles by which the components are found


def pca_image(
    model: keras.Model | str,
    images: Any,
    *,
    foreground: bool = True,
    bad_images: str = "raise",
    tiles: bool | dict = False,
) -> np.ndarray | list:
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
        tiles: Whether to see images at full size, in overlapping tiles; a dictionary has options, as in
            `AnomalyDetector`. Tokens of a patch that several tiles see are averaged. The components are those of
            100,000 patches at random, as many of each image; each image is read twice.

    Returns:
        float32 array, `(images, rows, columns, 3)`, red, green and blue from 0 to 1. `plots.plot_pca` draws it. With
        `tiles`, a list of arrays, `(rows, columns, 3)`; of an image that was skipped it is `(1, 1, 3)`.

    Raises:
        ValueError: As `preprocess`; for features that are not finite, fewer than four patches, or all alike.
    """
    checks.switch(foreground=foreground)
    embedder = Embedder(model, tokens=True)
    if tiles is not False:
        return _in_tiles(PatchMaps(embedder, tiles), images, foreground, bad_images)
    every = embedder(images, bad_images)  # (images, rows, columns, width)
    readable = np.isfinite(every).all((1, 2, 3))
    tokens = every[readable]
    border = np.ones(tokens.shape[:3], bool)
    border[:, 1:-1, 1:-1] = False
    flat = tokens.reshape(-1, tokens.shape[-1])
    result = np.full((*every.shape[:3], 3), np.nan, "float32")
    result[readable] = _painter(flat, border.ravel(), foreground)(flat).reshape(*tokens.shape[:3], 3)
    return result


def _in_tiles(maps, images, foreground, bad_images):
    """Returns the colors of whole images; arguments as in `pca_image`, and a `PatchMaps`."""
    images = listed(images)
    most = -(-SAMPLE // max(len(images), 1))

    def some(picture):
        rows, columns = picture.own
        flat = (part.reshape(-1, part.shape[-1]) for part in maps.rows(picture))
        tokens, chosen = sampled(flat, rows * columns, most)
        row, column = np.divmod(chosen, columns)
        return tokens, (row == 0) | (row == rows - 1) | (column == 0) | (column == columns - 1)

    found = maps.each(images, some, bad_images)
    read = [sample is not None for sample in found]
    paint = _painter(*map(np.concatenate, zip(*itertools.compress(found, read))), foreground)

    def colors(picture):
        parts = maps.rows(picture)
        return np.concatenate([paint(part.reshape(-1, part.shape[-1])).reshape(*part.shape[:2], 3) for part in parts])

    painted = iter(maps.each([*itertools.compress(images, read)], colors))
    return [next(painted) if fine else np.full((1, 1, 3), np.nan, "float32") for fine in read]


def _painter(tokens, border, foreground):
    """Returns the function from tokens to their colors, `(n, 3)`.

    Args:
        tokens: Those by which the components are found, `(n, width)`.
        border: Which of them are at the border of an image, `(n,)`.
        foreground: As in `pca_image`.
    """
    from sklearn.decomposition import PCA

    if len(tokens) < FEWEST or tokens.shape[-1] < 3 or np.ptp(tokens, axis=0).max() < 1e-12:
        raise ValueError(
            f"Three components need {FEWEST} patches with different features, of three channels or more. "
            f"Received: features of shape {tokens.shape}"
        )
    is_inside = lambda tokens: np.ones(len(tokens), bool)  # noqa: E731
    if foreground:
        first = PCA(1, random_state=0).fit(tokens)
        sign = 1 if np.mean(first.transform(tokens[border]) > 0) <= 0.5 else -1
        divided = lambda tokens: sign * first.transform(tokens)[:, 0] > 0  # noqa: E731
        is_inside = divided if divided(tokens).sum() >= FEWEST else is_inside
    inside = tokens[is_inside(tokens)]
    components = PCA(3, random_state=0).fit(inside)
    low, high = np.percentile(components.transform(inside), EDGES, axis=0)

    def paint(tokens):
        inside, colors = is_inside(tokens), np.zeros((len(tokens), 3), "float32")
        if inside.any():
            found = components.transform(tokens[inside])
            colors[inside] = np.clip((found - low) / np.maximum(high - low, 1e-12), 0, 1)
        return colors

    return paint
