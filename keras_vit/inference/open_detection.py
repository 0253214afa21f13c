"""Finds objects by the names of their classes, or like examples, with OWL-ViT and OWLv2."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vit.checkpoints.files.own import HEAD_METADATA
from keras_vit.inference.overlaps import overlaps
from keras_vit.inference.queries import Eyes, Queries, queries_for
from keras_vit.models.metadata import keep
from keras_vit.models.open_detector import features_of, of_classes
from keras_vit.utils import checks


class Detections(NamedTuple):
    """What `detect` found in one image, the most likely first."""

    boxes: np.ndarray  # float32, (objects, 4): left, top, right, bottom in pixels; may reach beyond the image
    scores: np.ndarray  # float32, (objects,), 0..1
    classes: list[str]  # the name of each object's class
    patches: np.ndarray  # int, (objects,): the patch that each box is of


def detect(
    model: keras.Model,
    images: Any,
    classes: Sequence[str] | Queries,
    tokens: Any = None,
    *,
    prompts: str | Sequence[str] | None = None,
    threshold: float = 0.1,
    suppression: float | None = None,
    batch_size: int = 1,
) -> list[Detections]:
    """Finds objects in images by the names of their classes, without training.

    Minderer et al. 2022 (OWL-ViT, arXiv:2205.06230) and 2023 (OWLv2, arXiv:2306.09683). Each patch predicts one box,
    and a score for each class, the sigmoid of a logit: classes do not compete. Its best class counts. Images are
    prepared as by the model's own processor, which pads them for OWLv2.

    Neighboring patches may find one object twice: `suppression=0.5` keeps the better of two boxes of one class. Wording
    changes scores: compare names, and prompts, on images of your own.

    Args:
        model: A model from `from_pretrained("hf://google/owlv2-base-patch16-ensemble")` or another OWL-ViT or OWLv2.
        images: Image files or other images that `preprocess` takes, of any sizes; or a single one.
        classes: Names, all different, such as `["a pipe", "a crack"]`; or `Queries`, as from `example_queries`.
        tokens: What makes ids of texts: a `tokenizer`, or the folder or repository that it is read from. Not needed for
            `Queries`.
        prompts: Texts with `{}` instead of the name, over whose embeddings the mean is taken, such as `["a photo of
            {}.", "{}"]`; by default the name alone.
        threshold: The score that a box must exceed.
        suppression: The overlap, intersection over union, from which on the lower of two boxes of one class is left
            out; `None` for no suppression, as in the original.
        batch_size: Number of images that are computed at once; a smaller last batch costs as much as a whole one.

    Returns:
        A list with `Detections` for each image: `boxes`, left, top, right and bottom in pixels of the image, `scores`,
        `classes` and `patches`.

    Raises:
        TypeError, ValueError: For another model; for a class given twice or none, a prompt without `{}`, a text that is
            longer than the tower's table or another checkpoint's tokenizer; for a threshold or suppression below 0
            or not below 1; and as `preprocess`.

    Example:

    >>> [found] = detect(model, "street.jpg", ["a car", "a bicycle"], "owlv2-base-patch16-ensemble")
    >>> found.classes, found.boxes.shape
    (['a car', 'a car', 'a bicycle'], (3, 4))
    """
    eyes = Eyes(model)
    checks.positive(batch_size=batch_size)
    checks.rate(threshold=threshold, **{} if suppression is None else {"suppression": suppression})
    queries = queries_for(eyes, classes, tokens, prompts)
    results = []
    for seen in eyes.see(images, batch_size):
        logits = logits_of(eyes.heads, seen.features, queries.vectors)
        for boxes, rows, size in zip(seen.boxes, logits, seen.sizes):
            results.append(found(boxes, rows, queries.classes, eyes.sides(size), threshold, suppression))
    return results


def logits_of(heads, features, vectors):
    """Returns the logits of patches with embeddings of classes, an array `(images, patches, classes)`."""
    real = np.ones((len(vectors), 1), "int32")  # ids of texts, none of which is empty
    return keras.ops.convert_to_numpy(heads.get_layer("logits")([features, vectors, real]))


def found(boxes, logits, classes, sides, threshold, suppression=None):
    """Returns the `Detections` of an image.

    Args:
        boxes: Array, `(patches, 4)`: top, left, bottom, right as shares.
        logits: Array, `(patches, classes)`.
        classes: Names of the classes.
        sides: By what the edges are multiplied to be in pixels.
        threshold: As in `detect`.
        suppression: As in `detect`.
    """
    from scipy.special import expit

    best = logits.argmax(-1)
    scores = expit(logits.max(-1).astype("float64")).astype("float32")
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > threshold]
    if suppression is not None:
        order = order[_kept(boxes[order], best[order], suppression)]
    edges = (boxes * sides)[order][:, [1, 0, 3, 2]]
    return Detections(edges, scores[order], [classes[i] for i in best[order]], order)


def _kept(boxes, best, suppression):
    """Returns which of some boxes are kept, the most likely first: those that overlap no kept one of their class."""
    kept = np.ones(len(boxes), bool)
    for i in range(len(boxes)):
        if kept[i]:
            close = overlaps(boxes[i + 1 :], boxes[i]) > suppression
            kept[i + 1 :] &= ~(close & (best[i + 1 :] == best[i]))
    return kept


def zero_shot_detector(
    model: keras.Model,
    classes: Sequence[str] | Queries,
    tokens: Any = None,
    *,
    prompts: str | Sequence[str] | None = None,
    most: int = 100,
    threshold: float = 0.1,
) -> keras.Model:
    """Builds a detector of classes by their names: a model of images alone, with the embeddings of `detect`.

    It needs no text tower and no tokenizer, and is saved, used by `predict` and exported like any other detector.

    Args:
        model: As in `detect`.
        classes: As in `detect`.
        tokens: As in `detect`.
        prompts: As in `detect`.
        most: Number of boxes of an image; of a model with fewer patches, one for each.
        threshold: The least score of a box that `predict` shows. The model keeps it, and returns all boxes.

    Returns:
        A `keras.Model` from pixels to `(batch, most, 4 + classes)`, float32, highest score first: top, left, bottom and
        right, 0..1, as shares of what the model sees, which for OWLv2 is the image padded to a square; then a score
        for each class, 0..1. It has copies of the weights. `class_names` has the names.

    Raises:
        TypeError, ValueError: As `detect`.
    """
    eyes = Eyes(model)
    checks.positive(most=most)
    checks.rate(threshold=threshold)
    queries = queries_for(eyes, classes, tokens, prompts)
    features = features_of(eyes.heads, eyes.image.outputs[0])
    boxes, old = eyes.heads.get_layer("places")(features), eyes.heads.get_layer("logits")
    copy = of_classes(eyes.image.inputs[0], features, boxes, old, queries.vectors, most)
    keep(copy, HEAD_METADATA, labels=queries.classes, score=threshold)
    return copy
