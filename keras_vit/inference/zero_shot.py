"""Classifies images by the names of classes, with the text tower of CLIP, SigLIP or one's own."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vit.checkpoints.files.own import HEAD_METADATA
from keras_vit.explain.class_vectors import class_vectors
from keras_vit.explain.towers import projected, projection_of, towers_of
from keras_vit.frozen.embedder import Embedder
from keras_vit.layers.functional import Model
from keras_vit.models.backbone import fill, has_towers
from keras_vit.models.by_frames import by_frames
from keras_vit.models.inputs import CLIPS, IMAGES
from keras_vit.models.kinds import GIVES
from keras_vit.models.metadata import keep
from keras_vit.utils import checks

AT_ONCE = 2**20  # probabilities that are computed in float64 at once
RENAMED = {"head": "projection", "classes": "head"}  # names in the classifier


class ZeroShot(NamedTuple):
    """The result of `zero_shot`."""

    probabilities: np.ndarray  # float32, (images, classes); NaN for an image that was skipped
    classes: list[str]  # in their order
    kind: str  # "softmax": those of an image sum to 1; "sigmoid": each is independent of the others


def zero_shot(
    model: keras.Model,
    images: Any,
    classes: Sequence[str],
    tokens: Any = None,
    *,
    prompts: str | Sequence[str] | None = None,
    batch_size: int = 32,
    bad_images: str = "raise",
    frames: int | None = None,
) -> ZeroShot:
    """Classifies images or clips by the names of classes, without training.

    Radford et al. 2021 (CLIP, arXiv:2103.00020), section 3.1. A class's vector is the mean of the embeddings of its
    prompts, each of length 1, and has length 1 again. The logit is its cosine with the image's embedding, by the
    model's scale.

    A model with a bias, such as SigLIP (Zhai et al. 2023, arXiv:2303.15343), was trained to say of each pair whether it
    belongs together: its probabilities are independent, and may all be small. Their order is still the answer.

    Args:
        model: A model with an image tower and a text tower, as from `from_pretrained(..., part="both")`.
        images: Image files or other images that `preprocess` takes. Or clips: files, or arrays `(frames, height, width,
            channels)`; an array of five axes is of clips, whatever the model.
        classes: Names, all different; two or more for a softmax.
        tokens: What makes ids of texts: a `tokenizer`, or the folder or repository that it is read from. `None` for a
            model with a table of words of its own.
        prompts: Texts with `{}` instead of the name, by default `"a photo of a {}."`; the name alone for a model
            with a table of words of its own. SigLIP's is `"this is a photo of {}."`.
        batch_size: Number of images that are computed at once.
        bad_images: `"raise"` for an image that cannot be read, or `"skip"`: it is named in a warning; its row is NaN.
        frames: For clips and a model of images: the number of frames of each clip that are seen, whose vectors are
            averaged; see `by_frames`. `None` for images, and for all frames of an array of clips.

    Returns:
        A `ZeroShot`: `probabilities`, float32, `(images, classes)`, `classes`, and `kind`, `"softmax"` or `"sigmoid"`.

    Raises:
        TypeError, ValueError: For another model; for a class given twice or none, a prompt without `{}`, a text that is
            longer than the tower's table or another checkpoint's tokenizer; and as `preprocess`.

    Example:

    >>> found = zero_shot(model, ["cat.jpg"], ["cat", "dog"], "clip-vit-base-patch32")
    >>> found.classes[found.probabilities[0].argmax()]
    'cat'
    """
    checks.positive(batch_size=batch_size)
    if frames is None and has_towers(model) and len(model.get_layer("image").input_shape) == IMAGES:
        frames = _frames_of(images)
    towers = of_clips(towers_of(model), frames)
    classes, vectors = class_vectors(towers, classes, tokens, prompts)
    at_once = max(batch_size // (frames or 1), 1)
    seen = projected(towers.image, Embedder(towers.image, batch_size=at_once)(images, bad_images))
    return ZeroShot(shares_of(towers, seen, vectors), classes, kind_of(towers))


def _frames_of(images):
    """Returns the number of frames of clips in arrays, all of one length; `None` for anything else."""
    if getattr(images, "ndim", 0) == CLIPS:
        return images.shape[1]
    clips = isinstance(images, (list, tuple)) and all(getattr(each, "ndim", 0) == CLIPS - 1 for each in images)
    counts = {len(each) for each in images} if clips else set()
    return counts.pop() if len(counts) == 1 else None


def of_clips(towers, frames=None):
    """Returns `Towers` with an image tower that takes clips of so many frames; as they are if it is `None`."""
    if frames is None:
        return towers
    checks.positive(frames=frames)
    return towers._replace(image=by_frames(towers.image, frames))


def one_by_one(model, images, classes, tokens=None, prompts=None, batch_size=32, frames=None):
    """Yields what `zero_shot` finds of each image as soon as its batch is computed; arguments and errors as there.

    Yields:
        The image, its probabilities, `(classes,)`, and `None`; or the image, `None` and why it cannot be read.
    """
    towers = of_clips(towers_of(model), frames)
    classes, vectors = class_vectors(towers, classes, tokens, prompts)
    at_once = max(batch_size // (frames or 1), 1)
    embedder, project = Embedder(towers.image, batch_size=at_once), projection_of(towers.image)
    return embedder.answered(images, lambda seen: shares_of(towers, project(seen), vectors))


def kind_of(towers):
    """Returns the `kind` of a `ZeroShot` by `Towers`."""
    return "softmax" if towers.bias is None else "sigmoid"


def shares_of(towers, seen, vectors):
    """Returns the probabilities of classes, float32, `(images, classes)`; on the way some rows at a time are larger.

    Args:
        towers: `Towers`.
        seen: Embeddings of images, of length 1, `(images, width)`.
        vectors: Those of classes, `(classes, width)`.
    """
    from scipy.special import expit, softmax

    shares = np.empty((len(seen), len(vectors)), "float32")
    rows, of_classes = max(AT_ONCE // len(vectors), 1), vectors.T.astype("float64")
    for some in (slice(i, i + rows) for i in range(0, len(seen), rows)):
        logits = towers.scale * (seen[some].astype("float64") @ of_classes) + (towers.bias or 0)
        shares[some] = softmax(logits, -1) if towers.bias is None else expit(logits)
    return shares


def zero_shot_classifier(
    model: keras.Model,
    classes: Sequence[str],
    tokens: Any = None,
    *,
    prompts: str | Sequence[str] | None = None,
) -> keras.Model:
    """Builds a classifier of the names of classes: an image tower whose head has the vectors of `zero_shot`.

    It needs no text tower and no tokenizer, and is saved, evaluated and exported like any other model.

    Args:
        model: As in `zero_shot`.
        classes: As in `zero_shot`.
        tokens: As in `zero_shot`.
        prompts: As in `zero_shot`.

    Returns:
        A `keras.Model` from pixels to logits, `(batch, classes)`, with copies of the image tower's weights. Its last
        layers are `projection` (CLIP's), `unit`, which makes the embedding's length 1, and `head`. `class_names` has
        the names. With a bias its outputs are several labels, each with a probability of its own.

    Raises:
        TypeError, ValueError: As `zero_shot`.
    """
    towers = towers_of(model)
    classes, vectors = class_vectors(towers, classes, tokens, prompts)
    embeddings = keras.layers.UnitNormalization(name="unit", dtype="float32")(towers.image.outputs[0])
    head = keras.layers.Dense(len(classes), name="classes", dtype="float32")
    shared = Model(towers.image.inputs[0], head(embeddings), name=towers.image.name)
    head.set_weights([towers.scale * vectors.T, np.full(len(classes), towers.bias or 0)])
    copy = fill(keras.models.clone_model(shared, clone_function=_renamed), shared.get_weights())
    kind = {} if towers.bias is None else {GIVES: {"head": "labels"}}
    keep(copy, HEAD_METADATA, **kind, labels=classes)
    return copy


def _renamed(layer):
    """Returns a copy of a layer, also inside a model, whose name makes room for the head of the classes."""
    if isinstance(layer, keras.Model):
        return keras.models.clone_model(layer, clone_function=_renamed)
    config = layer.get_config()
    return type(layer).from_config({**config, "name": RENAMED.get(layer.name, layer.name)})
