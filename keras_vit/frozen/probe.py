"""A linear classifier on the vectors of an index: the linear probe."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vit.checkpoints.files.own import HEAD_METADATA
from keras_vit.explain.embedding import vectors_of
from keras_vit.frozen.index import flat, opened
from keras_vit.frozen.neighbors import classes_of, embedder_of
from keras_vit.layers.functional import Model
from keras_vit.models.backbone import fill, input_of
from keras_vit.models.metadata import keep
from keras_vit.utils import checks

STRENGTHS = tuple(10.0**i for i in range(-5, 4))  # inverse L2 regularization, scikit-learn's C
STEPS = 1000  # of L-BFGS, at most


class Probe(NamedTuple):
    """The result of `probe`."""

    model: keras.Model  # the index's model with a head: pixels in, logits out
    classes: list[str]  # in the order of the logits
    accuracy: float  # top-1 on the part that chose the regularization, 0 to 1
    strength: float  # scikit-learn's C: the inverse of the regularization


def probe(
    index: Any,
    labels: Sequence[str] | None = None,
    *,
    model: keras.Model | str | None = None,
    validation: float = 0.2,
    seed: int = 0,
) -> Probe:
    """Trains a linear classifier on the vectors of an index, and puts it on the model as its head.

    Multinomial logistic regression on standardized vectors. A part of the images, drawn class by class, chooses the L2
    regularization from nine strengths; then all images are used. No weight of the model changes: each image was
    computed once.

    Args:
        index: As in `nearest`.
        labels: As in `knn`.
        model: As in `nearest`.
        validation: Share of the images that chooses the regularization, above 0 and below 1.
        seed: Random seed of that part.

    Returns:
        A `Probe`. Its `model` is saved, evaluated and exported like any `vit`; it shares no weights with the index's.

    Raises:
        ValueError: As `knn`, and for a class with fewer than two images.
    """
    checks.rate(validation=validation)
    checks.above_zero(validation=validation)
    checks.whole(seed=seed)
    index = flat(opened(index))
    names, classes, inside = classes_of(index, labels)
    counts = np.bincount(classes)
    if counts.min() < 2:
        raise ValueError(f"Each class needs two images. Received: one of {names[counts.argmin()]!r}")
    embedder = embedder_of(index, model)
    found = classifier(index.vectors[inside], classes, validation, seed)
    kernel, bias = _logits(found.regression)
    kernel = kernel / found.scaler.scale_[:, None]
    return Probe(
        _with_head(embedder.model, kernel, bias - found.scaler.mean_ @ kernel, names),
        names,
        found.accuracy,
        found.strength,
    )


class Classifier(NamedTuple):
    """A logistic regression on vectors; the other fields are as in `Probe`."""

    scaler: Any  # scikit-learn's, which standardizes the vectors
    regression: Any  # scikit-learn's
    accuracy: float
    strength: float


def classifier(vectors, classes, validation=0.2, seed=0):
    """Fits a logistic regression to vectors, `(images, width)`, and classes, `(images,)`, as `probe` does.

    Returns:
        A `Classifier`.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(vectors)
    vectors = scaler.transform(vectors)
    validation_rows = _held(classes, validation, np.random.default_rng(seed))
    train = np.setdiff1d(np.arange(len(classes)), validation_rows)

    def fitted(strength, rows):
        return LogisticRegression(C=strength, max_iter=STEPS).fit(vectors[rows], classes[rows])

    answers = [fitted(strength, train).predict_proba(vectors[validation_rows]) for strength in STRENGTHS]
    scores = [
        (float(np.mean(p.argmax(1) == classes[validation_rows])), -log_loss(classes[validation_rows], p))
        for p in answers
    ]
    (accuracy, _), strength = max(zip(scores, STRENGTHS))  # of equal accuracies the likelier answers
    return Classifier(scaler, fitted(strength, slice(None)), accuracy, strength)


def _held(classes, share, rng):
    """Returns the positions of a share of each class, of at least one image and not of all."""
    places = np.split(np.argsort(classes, kind="stable"), np.cumsum(np.bincount(classes))[:-1])  # of each class
    drawn = [rng.permutation(rows) for rows in places]
    return np.concatenate([rows[: np.clip(round(share * len(rows)), 1, len(rows) - 1)] for rows in drawn])


def _logits(classifier):
    """Returns the kernel, `(width, classes)`, and bias of a classifier; of two classes the first has the logit 0."""
    kernel, bias = classifier.coef_.T, classifier.intercept_
    if len(bias) == 1:
        kernel, bias = np.hstack([0 * kernel, kernel]), np.append(0, bias)
    return kernel, bias


def _with_head(model, kernel, bias, names):
    """Returns a copy of a model with this head in place of its own, and with these class names."""
    head = keras.layers.Dense(len(names), name="head", dtype="float32")
    vectors = vectors_of(model)
    shared = Model(input_of(model, [vectors]), head(vectors), name=model.name)
    copy = fill(keras.models.clone_model(shared), shared.get_weights())
    copy.get_layer("head").set_weights([kernel, bias])
    keep(copy, HEAD_METADATA, labels=names)
    return copy
