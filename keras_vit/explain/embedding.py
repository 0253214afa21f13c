"""Embeddings of images: vectors, projections to two dimensions, nearest neighbors."""

import keras
import numpy as np

from keras_vit.explain import inside
from keras_vit.layers import TransformerBlock
from keras_vit.models.backbone import input_of, leading_to, outputs_of
from keras_vit.preparing import pixel_range
from keras_vit.utils import checks, extras
from keras_vit.utils.feeding import predict
from keras_vit.utils.keras_private import sublayers

AFTER = (keras.layers.Softmax, keras.layers.Activation, keras.layers.Dropout)  # a head
METHODS = ("pca", "tsne", "umap")


def embed(model: keras.Model, images, batch_size: int = 64) -> np.ndarray:
    """Computes the embedding of each image: the vector that enters the model's head.

    Args:
        model: A functional Keras model. Its head is the layer named `"head"`, a dense last layer, or the head of a
            model nested last. A model without a head returns its output.
        images: Array, `(batch, height, width, channels)`, 0..255.
        batch_size: Number of images at a time.

    Returns:
        float32 array, `(batch, width)`.

    Raises:
        ValueError: If the images do not fit the model, or it does not compute one vector for each image.
    """
    checks.positive(batch_size=batch_size)
    vectors = vectors_of(model)
    if len(vectors.shape) != 2:
        raise ValueError(
            f"{model.name!r} must compute one vector for each image. Received: outputs {tuple(vectors.shape)}"
        )
    inputs = input_of(model, [vectors])
    has_blocks = any(isinstance(layer, TransformerBlock) for layer in sublayers(model))
    check = inside.checked if has_blocks else pixel_range.checked
    images = check(model, images, *[] if has_blocks else [inputs.shape[1:]])
    return np.asarray(predict(keras.Model(inputs, vectors), images, batch_size), "float32")


def vectors_of(model):
    """Returns the symbolic input of the head of a model, or of the model nested last in it."""
    if not outputs_of(model):
        raise ValueError(f"The model must be a functional Keras model. Received: {checks.shown(model)}")
    last = next((layer for layer in model.layers if layer.name == "head"), _last(model))
    if isinstance(last, keras.layers.Dense) and last.name != "pre_logits":  # which is the end without a head
        return last.input
    nested = [node for node in leading_to(model.outputs) if node.operation is last and outputs_of(last)]
    if not nested or vectors_of(last) is last.outputs[0]:
        return model.outputs[0]
    return keras.Model(last.inputs, vectors_of(last))(nested[0].input_tensors)


def _last(model):
    """Returns the last layer or model of a model, but for a softmax and others without weights after one that has."""
    layers = [layer for layer in model.layers if layer.weights]
    after = model.layers[model.layers.index(layers[-1]) + 1 :] if layers else model.layers
    return layers[-1] if layers and all(isinstance(layer, AFTER) for layer in after) else model.layers[-1]


def unit(vectors):
    """Returns vectors of length 1, `(n, width)`."""
    vectors = np.reshape(vectors, (-1, np.shape(vectors)[-1]))
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


FEWEST = 4  # different vectors that have neighbors to keep


def project(vectors, method: str = "pca", seed: int = 0) -> np.ndarray:
    """Projects vectors to two dimensions, to plot them.

    Args:
        vectors: Array, `(n, width)`, at least three vectors.
        method: `"pca"`: the two principal components. `"tsne"`: neighbors stay neighbors (van der Maaten and Hinton
            2008), distances between groups mean little. `"umap"`: the same (McInnes et al. 2018, arXiv:1802.03426);
            needs the package umap-learn. For fewer than four different vectors, both are `"pca"`.
        seed: Random seed.

    Returns:
        float32 array, `(n, 2)`.

    Raises:
        ValueError: For an unknown method, or an array of another shape.
        ImportError: For `"umap"`, if umap-learn is not installed.
    """
    checks.one_of("method", method, METHODS)
    vectors = np.asarray(vectors, "float32")
    if vectors.ndim != 2 or len(vectors) < 3 or vectors.shape[1] < 2 or not np.isfinite(vectors).all():
        finite = "finite" if np.isfinite(vectors).all() else "not finite"
        raise ValueError(
            f"`vectors` must be at least three finite vectors of two numbers or more. Received: shape={vectors.shape}, "
            f"{finite}"
        )
    distinct, place = np.unique(vectors, axis=0, return_inverse=True)
    if method != "pca" and len(distinct) < len(vectors):  # equal ones have one place; all equal would end the process
        return project(distinct, method, seed)[place] if len(distinct) >= FEWEST else project(vectors, "pca", seed)
    if method == "umap":
        extras.need("method='umap'", "umap", "umap")
        from umap import UMAP

        reducer = UMAP(n_neighbors=min(15, len(vectors) - 1), random_state=seed, n_jobs=1)
    elif method == "tsne":
        from sklearn.manifold import TSNE

        reducer = TSNE(perplexity=min(30, (len(vectors) - 1) / 3), init="pca", random_state=seed)
    else:
        from sklearn.decomposition import PCA

        reducer = PCA(2, random_state=seed)
    return np.asarray(reducer.fit_transform(vectors), "float32")


def nearest(vectors, queries, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Finds the nearest neighbors by cosine similarity.

    Args:
        vectors: Array to search, `(n, width)`.
        queries: Array, `(queries, width)`.
        count: Number of neighbors of each query.

    Returns:
        Two arrays, `(queries, count)`: indices into `vectors`, nearest first, and the cosine similarities.

    Raises:
        ValueError: If `count` is larger than the number of vectors, or the widths differ.
    """
    from sklearn.neighbors import NearestNeighbors

    checks.positive(count=count)
    if np.shape(vectors)[1:] != np.shape(queries)[1:]:
        raise ValueError(
            f"`vectors` and `queries` must have one width. Received: {np.shape(vectors)} and {np.shape(queries)}"
        )
    if count > len(vectors):
        raise ValueError(f"`count` must be at most the {len(vectors)} vectors. Received: count={count}")
    distances, indices = NearestNeighbors(metric="cosine").fit(vectors).kneighbors(queries, count)
    return indices, (1 - distances).astype("float32")
