"""Nearest neighbors of images among those of an index: search, and classes by vote."""

import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_vit.checkpoints.pretrained import from_pretrained
from keras_vit.explain import embedding
from keras_vit.explain.towers import projected, text_vectors, towers_of
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.index import flat, opened
from keras_vit.tasks.pretrain.neighbors import votes
from keras_vit.utils import checks
from keras_vit.utils.folders import SPLITS
from keras_vit.utils.warned import warn


def nearest(
    index: Any,
    images: Any,
    k: int = 5,
    *,
    model: keras.Model | str | None = None,
    tokens: Any = None,
    bad_images: str = "raise",
) -> list[list[tuple[str, float]]]:
    """Finds the images of an index that are most similar to each of the given ones, or to texts.

    Args:
        index: An `Index`, or the path of its file.
        images: Image files or other images that `preprocess` takes; or their vectors, `(images, width)` of floats, a
            list of vectors, or a single one; an index of CLIP takes those of texts too. With `tokens` texts, or a
            single one, such as `"a red car"`.
        k: Number of answers for each image.
        model: The model of the index; the one that its file names if `None`. Not needed for vectors. For texts the
            model with both towers, its `.keras` file, or what `from_pretrained` takes with `part="both"`.
        tokens: For texts: a `tokenizer`, or the folder or repository that it is read from; or the model, if it has a
            table of words of its own.
        bad_images: `"raise"` for an image that cannot be read, or `"skip"`: it is named in a warning, and its answer
            is empty.

    Returns:
        For each image a list of `(path, cosine similarity)`, most similar first.

    Raises:
        ValueError: For an index of patch tokens or of another model; for vectors of another width, that are not
            finite or are zero; if `k` is larger than the index; or as `preprocess`. For a text that is empty or longer
            than the tower's table, and for a model without a text tower.
        FileNotFoundError: If a file does not exist.
    """
    checks.positive(k=k)
    index = flat(opened(index))
    check_count(index, k)
    if tokens is None:
        vectors, readable = queries(index, images, model, bad_images)
        searched = in_space_of(index, vectors)
    else:
        searched, vectors = common_space(index, images, model, tokens)
        readable = np.ones(len(vectors), bool)
    tell_missing(index)
    answers = [[] for _ in readable]
    for place, row, near in zip(np.flatnonzero(readable), *embedding.nearest(searched, vectors, k)):
        answers[place] = [(str(index.file(i)), float(s)) for i, s in zip(row, near)]
    return answers


def knn(
    index: Any,
    images: Any,
    labels: Sequence[str] | None = None,
    *,
    k: int = 20,
    model: keras.Model | str | None = None,
    bad_images: str = "raise",
) -> list[dict[str, float]]:
    """Classifies images by the nearest ones of an index, which vote as in `knn_accuracy`.

    Args:
        index: As in `nearest`.
        images: As in `nearest`.
        labels: Class of each image of the index. `None` for its first folder below the index's folder, as `fit` on that
            folder has it; images outside a class folder do not vote.
        k: Number of neighbors that vote; all if there are fewer.
        model: As in `nearest`.
        bad_images: As in `nearest`.

    Returns:
        For each image a dictionary of classes and their shares of the votes, most first.

    Raises:
        ValueError: As `nearest`; for fewer than two classes, or another number of labels than images; and without
            `labels` for an index of the splits of a data set, such as `train` and `val`.
    """
    checks.positive(k=k)
    index = flat(opened(index))
    of_classes = classes_of(index, labels)
    vectors, readable = queries(index, images, model, bad_images)
    answers = [{} for _ in readable]
    for place, answer in zip(np.flatnonzero(readable), voted(index, of_classes, vectors, k)):
        answers[place] = answer
    return answers


def voted(index, named, vectors, k):
    """Returns the answers of `knn` for vectors; `named` is what `classes_of` returns."""
    names, classes, inside = named
    neighbors, similarities = embedding.nearest(in_space_of(index, vectors)[inside], vectors, min(k, len(classes)))
    shares = votes(similarities, classes[neighbors], len(names))
    shares /= shares.sum(1, keepdims=True)
    return [{names[i]: float(row[i]) for i in np.argsort(-row, kind="stable")} for row in shares]


def one_by_one(index, images, k, model=None, vote=False):
    """Yields what `nearest`, or with `vote` `knn`, finds for each image as soon as its batch is computed.

    Arguments and errors as there.

    Yields:
        The image, its answer and `None`; or the image, `None` and why it cannot be read.
    """
    checks.positive(k=k)
    index = flat(opened(index))
    if vote:
        of_classes = classes_of(index)
        return embedder_of(index, model).answered(images, lambda vectors: voted(index, of_classes, vectors, k))
    check_count(index, k)
    return embedder_of(index, model).answered(images, lambda vectors: nearest(index, [*vectors], k))


def check_count(index, k):
    """Raises ValueError if an index has fewer than `k` images."""
    if k > len(index.paths):
        raise ValueError(f"`k` must be at most the {len(index.paths)} images of the index. Received: k={k}")


def queries(index, images, model=None, bad_images="raise"):
    """Returns the vectors of the images that can be read, and which can: booleans.

    Arguments and errors as in `nearest`.
    """
    if (rows := _vectors(images)) is not None:
        widths = [index.vectors.shape[1]] + ([] if index.projection is None else [index.projection.shape[1]])
        if rows.shape[1] not in widths or not np.isfinite(rows).all() or not rows.any(1).all():
            texts = f", or that of texts, {widths[1]}" if widths[1:] else ""
            raise ValueError(
                f"Vectors must be finite, not zero, and have the index's width, {widths[0]}{texts}. "
                f"Received: shape {rows.shape}"
            )
        if np.ndim(images) == 2 and isinstance(images, np.ndarray) and rows.min() >= 0:
            raise ValueError(
                "An array of two axes without a negative number may be a gray picture or vectors: pass [picture], or a "
                f"list of the vectors. Received: shape {rows.shape}"
            )
        return rows, np.ones(len(rows), bool)
    vectors = embedder_of(index, model)(images, bad_images)
    readable = np.isfinite(vectors).all(1)
    return vectors[readable], readable


def in_space_of(index, vectors):
    """Returns the vectors of an index, projected if the given ones are of texts, as their width shows."""
    if vectors.shape[1] == index.vectors.shape[1]:
        return index.vectors
    return index.vectors @ index.projection[:-1] + index.projection[-1]


def _vectors(images):
    """Returns vectors as an array, `(images, width)`: of one, a list of them, or such an array; else `None`."""
    if isinstance(images, (list, tuple)):
        rows = [row for row in images if isinstance(row, np.ndarray)]
        alike = len({row.shape for row in rows}) == 1 and all(row.ndim == 1 and row.dtype.kind == "f" for row in rows)
        return np.stack(rows) if alike and len(rows) == len(images) else None
    if isinstance(images, np.ndarray) and images.ndim in (1, 2) and images.dtype.kind == "f":
        return np.atleast_2d(images)
    return None


def common_space(index, texts, model, tokens):
    """Returns the vectors of an index's images in the space of texts, and those of the texts.

    Arguments and errors as in `nearest`.
    """
    model = named(index, model)
    if not isinstance(model, keras.Model):
        model = from_pretrained(checks.path("model", model), part="both")
    towers = towers_of(model)
    embedder_of(index, towers.image)
    after = index.about.get("projected") or index.about.get("frames")
    vectors = embedding.unit(index.vectors) if after else projected(towers.image, index.vectors)
    return vectors, text_vectors(towers, tokens, texts)


def tell_missing(index):
    """Warns if the folder of an index's images is not there."""
    if not pathlib.Path(index.about["folder"]).is_dir():
        warn(
            f"The folder of the index, {index.about['folder']!r}, is not there, and none of the images that are found. "
            "Pass where it is now: load_index(file, folder=...)."
        )


def named(index, model=None):
    """Returns a model, or the name of the index's if it is `None`; raises ValueError if the index names none."""
    model = model if model is not None else index.about["model"]
    if isinstance(model, str) and not model:
        raise ValueError("The index was made with a model that has no name: pass it. Received: model=None")
    return model


def embedder_of(index, model=None):
    """Returns the `Embedder` of an index; of the model that it names if `model` is `None`.

    Raises:
        ValueError: If it is another model, or the index names none.
    """
    model = named(index, model)
    kinds = {"projected": bool(index.about.get("projected")), "frames": index.about.get("frames")}
    embedder = Embedder(model, tokens=index.vectors.ndim == 4, **kinds)
    if embedder.fingerprint() != index.about["fingerprint"]:
        raise ValueError(
            "`model` must be the index's: the same weights, image size and preprocessing. "
            f"Received: {embedder.name or embedder.model.name!r} and an index of {index.about['model'] or 'another'}"
        )
    return embedder


def classes_of(index, labels=None):
    """Returns the names of the classes, sorted, the class index of each image that has one, and the images' positions.

    Arguments and errors as in `knn`.
    """
    inside = np.arange(len(index.paths))
    if labels is None:
        folders = [pathlib.PurePath(str(path)).parts[:-1] for path in index.paths]
        inside = np.array([i for i, parts in enumerate(folders) if parts], int)
        labels = [folders[i][0] for i in inside]
        if len(set(labels)) > 1 and {label.lower() for label in labels} <= SPLITS:
            raise ValueError(
                f"The folders must be classes, not splits: embed one of them, or pass `labels`. "
                f"Received: {', '.join(sorted(set(labels)))}"
            )
    labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    if not isinstance(labels, (list, tuple)) or len(labels) != len(inside):
        count = len(labels) if isinstance(labels, (list, tuple)) else checks.shown(labels)
        raise ValueError(f"`labels` must be a list, one for each of the {len(index.paths)} images. Received: {count}")
    names, classes = np.unique([str(label) for label in labels], return_inverse=True)
    if len(names) < 2:
        only = f"{str(names[0])!r} only" if len(names) else "images outside a folder"
        raise ValueError(f"At least two classes are needed, one folder each. Received: {only}")
    return names.tolist(), classes, inside
