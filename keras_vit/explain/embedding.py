"""Where images lie, as the model sees them."""

import keras
import numpy as np

from keras_vit import checks
from keras_vit.backbone import input_of, leading_to, outputs_of
from keras_vit.explain import anatomy
from keras_vit.keras_private import sublayers
from keras_vit.layers import TransformerBlock

METHODS = ("pca", "tsne", "umap")


def embed(model, images, batch_size=64):
    """Returns the vector of each image that the model's head sees.

    Args:
        model: A functional Keras model with a layer called `"head"`, or whose last layer is dense or such a model; one
            without a head gives its output.
        images: Array, `(batch, height, width, channels)`, 0..255.
        batch_size: Images at a time.

    Returns:
        float32 array, `(batch, width)`.

    Raises:
        ValueError: If the images do not fit the model, or it gives no vector an image.
    """
    checks.positive(batch_size=batch_size)
    vectors = _vectors(model)
    if len(vectors.shape) != 2:
        raise ValueError(f"{model.name!r} gives no vector an image. Received: outputs {tuple(vectors.shape)}")
    inputs = input_of(model, [vectors])
    has_blocks = any(isinstance(layer, TransformerBlock) for layer in sublayers(model))
    images = anatomy.checked(model, images) if has_blocks else checks.pixels(images, inputs.shape[1:])
    return np.asarray(keras.Model(inputs, vectors).predict(images, batch_size, verbose=0), "float32")


def _vectors(model):
    """Returns the symbolic vectors that the head of a model, or of one nested at its end, is given."""
    if not outputs_of(model):
        raise ValueError(f"A functional Keras model is needed. Received: {model!r}")
    last = next((layer for layer in model.layers if layer.name == "head"), model.layers[-1])
    if isinstance(last, keras.layers.Dense):
        return last.input
    nested = [node for node in leading_to(model.outputs) if node.operation is last and outputs_of(last)]
    if not nested or _vectors(last) is last.outputs[0]:
        return model.outputs[0]
    return keras.Model(last.inputs, _vectors(last))(nested[0].input_tensors)


def project(vectors, method="pca", seed=0):
    """Brings vectors into two dimensions, to be drawn.

    Args:
        vectors: Array, `(n, width)`, at least three.
        method: `"pca"`: the two principal components. `"tsne"`: neighbours stay neighbours (van der Maaten and Hinton
            2008), distances between groups mean little. `"umap"`: likewise (McInnes et al. 2018, arXiv:1802.03426);
            needs the package umap-learn.
        seed: Of what is drawn at random.

    Returns:
        float32 array, `(n, 2)`.

    Raises:
        ValueError: For another method or shape.
        ImportError: If `"umap"` is not installed.
    """
    checks.one_of("method", method, METHODS)
    vectors = np.asarray(vectors, "float32")
    if vectors.ndim != 2 or len(vectors) < 3 or vectors.shape[1] < 2 or not np.isfinite(vectors).all():
        finite = "finite" if np.isfinite(vectors).all() else "not finite"
        raise ValueError(f"`vectors` is three finite vectors or more. Received: shape={vectors.shape}, {finite}")
    if method == "umap":
        try:
            from umap import UMAP
        except ImportError:
            raise ImportError("method='umap' needs umap-learn: pip install umap-learn") from None
        reducer = UMAP(n_neighbors=min(15, len(vectors) - 1), random_state=seed, n_jobs=1)
    elif method == "tsne":
        from sklearn.manifold import TSNE

        reducer = TSNE(perplexity=min(30, (len(vectors) - 1) / 3), init="pca", random_state=seed)
    else:
        from sklearn.decomposition import PCA

        reducer = PCA(2, random_state=seed)
    return np.asarray(reducer.fit_transform(vectors), "float32")


def nearest(vectors, queries, count=5):
    """Finds the nearest of some vectors by cosine.

    Args:
        vectors: Array, `(n, width)`, to be searched.
        queries: Array, `(queries, width)`.
        count: How many to find for each.

    Returns:
        Two arrays, `(queries, count)`: indices into `vectors`, nearest first, and the cosines.

    Raises:
        ValueError: If more are asked for than there are.
    """
    from sklearn.neighbors import NearestNeighbors

    checks.positive(count=count)
    if np.shape(vectors)[1:] != np.shape(queries)[1:]:
        raise ValueError(f"Vectors of one width are compared. Received: {np.shape(vectors)} and {np.shape(queries)}")
    if count > len(vectors):
        raise ValueError(f"{len(vectors)} vectors have no {count} nearest. Received: count={count}")
    distances, indices = NearestNeighbors(metric="cosine").fit(vectors).kneighbors(queries, count)
    return indices, (1 - distances).astype("float32")
