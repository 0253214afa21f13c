"""What the patch projection and the position embeddings have learned."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers import PatchEncoder, Patches
from keras_vit.models import anatomy
from keras_vit.utils import checks
from keras_vit.utils.keras_private import sublayers


def patch_filters(model: keras.Model, count: int = 28) -> np.ndarray:
    """Computes the principal components of the patch projection's filters.

    Dosovitskiy et al. 2021 (arXiv:2010.11929), figure 7 left. For a model with a convolutional stem, those of the
    stem's first convolution.

    Args:
        model: A functional Keras model with one `Patches` and one `PatchEncoder` layer.
        count: Number of components; fewer are returned if there are fewer.

    Returns:
        float32 array, `(components, height, width, channels)`. Each component has norm one; those that explain the most
        variance come first.

    Raises:
        ValueError: For a count below 1, or a model without these layers.
    """
    from sklearn.decomposition import PCA

    checks.positive(count=count)
    kernel, patches = anatomy.only(model, PatchEncoder).projection.kernel, anatomy.only(model, Patches)
    size, parts = patches.patch_size, sublayers(model)
    layers = next(part.layers for part in parts if isinstance(part, keras.Model) and patches in part.layers)
    before = layers[: layers.index(patches)]
    inside = [part for layer in before for part in sublayers(layer)]
    convolutions = [layer.kernel for layer in inside if isinstance(layer, keras.layers.Conv2D)]
    if convolutions:
        kernel, size = convolutions[0], convolutions[0].shape[:2]
    kernel = ops.convert_to_numpy(kernel).astype("float32")
    filters = kernel.reshape(-1, kernel.shape[-1]).T  # (filters, height * width * channels)
    components = PCA(min(count, *filters.shape), svd_solver="full").fit(filters).components_
    return components.reshape(len(components), *size, -1)


def position_similarity(model: keras.Model) -> np.ndarray:
    """Computes the cosine similarity between the position embeddings of all patches.

    Dosovitskiy et al. 2021 (arXiv:2010.11929), figure 7 center.

    Args:
        model: A functional Keras model with one `Patches` and one `PatchEncoder` layer.

    Returns:
        float32 array, `(rows, columns, rows, columns)`, -1 to 1: between each patch and each other.

    Raises:
        ValueError: If the model has no position embeddings.
    """
    encoder, grid = anatomy.only(model, PatchEncoder), anatomy.grid(model)
    if encoder.position is None:
        raise ValueError(f"The model must have position embeddings. Received: {model.name!r}, with position=None")
    table = ops.convert_to_numpy(encoder.position_embedding).astype("float32")[0, -math.prod(grid) :]
    table = table / np.maximum(np.linalg.norm(table, axis=-1, keepdims=True), 1e-12)
    return (table @ table.T).reshape(*grid, *grid)
