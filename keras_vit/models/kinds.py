"""Kinds of outputs: how a file names them, and how two are compared. A kind is a row."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

from keras_vit.models import box_outputs
from keras_vit.models.backbone import image_tower, keeper
from keras_vit.models.inputs import inputs_of
from keras_vit.utils.losses import kind_of_loss

GIVES = "gives"  # in a model's metadata: a dictionary from the name of its last layer to the kind of its output


def _numbers(output, size, shares):
    return {"probabilities" if shares else "logits": output}


def _as(name):
    """Returns the function that gives an output one name."""
    return lambda output, size, shares: {name: output}


def _only(outputs, size):
    return next(iter(outputs.values()))


def _largest(outputs, expected):
    return float(np.abs(outputs - expected).max())


def _top(outputs):
    """Returns the top-1 class; of a single logit, whether it is above 0."""
    return outputs.argmax(-1) if outputs.shape[-1] > 1 else outputs > 0


def _signs(outputs):
    """Returns which labels are more likely than not: of probabilities those above a half, of logits those above 0."""
    return outputs > (0.5 if outputs.min() >= 0 and outputs.max() <= 1 else 0)


def _vectors(outputs, expected):
    return outputs.reshape(len(outputs), -1), expected.reshape(len(expected), -1)


def _maps(outputs, expected):
    """Returns maps as vectors, `(batch, channels, cells)`."""
    return tuple(np.moveaxis(maps.reshape(len(maps), -1, maps.shape[-1]), 2, 1) for maps in (outputs, expected))


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of outputs. The defaults are those of numbers by name, such as the logits of classes.

    Args:
        names: All names of its outputs in exported files.
        labeled: Those whose last axis is the classes.
        named: Function from the model's output, `(height, width)` of its images and whether its numbers are
            probabilities to a file's outputs by name.
        packed: Function from a file's outputs by name, arrays, and `(height, width)` to the model's one: its inverse.
        edges: Channels before those of the classes.
        bounded: Why it has no softmax, a sentence; `None` if it may have one.
        aligned: Function from two outputs to both, made comparable number by number.
        largest: Function from two aligned outputs to their largest difference.
        same: Function from aligned outputs to an array, whose equal elements count as agreement.
        counted: What `same` returns, in words.
        probabilities: Function from logits, a tensor, to the probabilities of an exported file.
        classes: Function from a model to the number of its classes, where its last axis is not theirs.
        own: Whether each number has a range of its own, such as a price next to a count of rooms.
    """

    names: tuple[str, ...] = ("logits", "probabilities")
    labeled: tuple[str, ...] = ()
    named: Callable = _numbers
    packed: Callable = _only
    edges: int = 0
    bounded: str | None = None
    aligned: Callable = lambda outputs, expected: (outputs, expected)
    largest: Callable = _largest
    same: Callable = _top
    counted: str = "top-1 class"
    probabilities: Callable = keras.ops.softmax
    classes: Callable | None = None
    own: bool = False

    def agreement(self, outputs, expected):
        """Returns the share of aligned outputs that are the same."""
        return float((self.same(outputs) == self.same(expected)).mean())


def _of_noise(name):
    """Returns the kind of what a model says of noisy images, or of images, `(batch, height, width, channels)`."""
    return Kind(
        names=(name,),
        named=_as(name),
        bounded=f"The output, {name}, has no probabilities.",
        aligned=_vectors,
        same=lambda outputs: np.round(outputs, 2),
        counted="numbers to two decimals",
    )


KINDS = {
    "classes": Kind(labeled=("logits", "probabilities")),
    "numbers": Kind(
        names=("numbers",),
        named=_as("numbers"),
        bounded="Numbers are no probabilities.",
        same=lambda outputs: np.round(outputs, 3),
        counted="numbers to three decimals",
        own=True,
    ),
    "labels": Kind(  # several for each image, or none
        labeled=("logits", "probabilities"),
        same=_signs,
        counted="labels",
        probabilities=keras.ops.sigmoid,
    ),
    "masks": Kind(labeled=("logits", "probabilities")),
    "label_masks": Kind(  # of each class a mask of its own, `(batch, height, width, classes)`
        labeled=("logits", "probabilities"),
        same=_signs,
        counted="pixels of labels",
        probabilities=keras.ops.sigmoid,
    ),
    "boxes": Kind(
        names=("boxes", "scores"),
        labeled=("scores",),
        named=box_outputs.named,
        packed=box_outputs.packed,
        edges=box_outputs.EDGES,
        bounded="A detector returns scores already.",
        aligned=box_outputs.aligned,
        largest=box_outputs.largest,
    ),
    "instances": Kind(  # boxes with scores, as above, then the logits of a mask each, `(batch, most, numbers)`
        names=("instances",),
        named=_as("instances"),
        bounded="A detector returns scores already.",
        aligned=_vectors,
        same=lambda outputs: outputs > 0,
        counted="signs of numbers",
        classes=lambda model: model.get_layer("boxes").output.shape[-1] - box_outputs.EDGES,
    ),
    "words": Kind(  # ids that were written, and a probability
        names=("ids",),
        named=_as("ids"),
        bounded="Words are no classes.",
        aligned=_vectors,
        same=np.rint,
        counted="ids",
    ),
    "embeddings": Kind(  # a vector of a text, `(batch, channels)`
        names=("embeddings",),
        named=_as("embeddings"),
        bounded="A vector has no probabilities.",
        same=lambda outputs: outputs > 0,
        counted="signs of numbers",
    ),
    "pairs": Kind(  # a vector of the image and one of its text, `(batch, 2, channels)`
        names=("pairs",),
        named=_as("pairs"),
        bounded="A pair of vectors has no probabilities.",
        aligned=_vectors,
        same=lambda outputs: outputs > 0,
        counted="signs of numbers",
    ),
    "velocity": _of_noise("velocity"),
    "noise": _of_noise("noise"),  # of a published model whose files say so
    "latents": _of_noise("latents"),  # mean and logarithm of the variance, `(batch, rows, columns, 2 * channels)`
    "prediction": _of_noise("prediction"),  # of a published model: noise, or a velocity; no file says which
    "depth": Kind(  # a number for each pixel, `(batch, height, width, 1)`
        names=("depth",),
        named=_as("depth"),
        bounded="Depth has no probabilities.",
        aligned=_vectors,
        same=lambda outputs: outputs > np.median(outputs, axis=-1, keepdims=True),
        counted="pixels above the median",
    ),
    "heatmaps": Kind(  # a map for each keypoint, `(batch, rows, columns, keypoints)`
        names=("heatmaps",),
        named=_as("heatmaps"),
        bounded="Heat maps have no probabilities.",
        aligned=_maps,
        counted="highest cell",
    ),
    "segments": Kind(  # for each query logits of classes, then those of its mask, `(batch, queries, numbers)`
        names=("segments",),
        named=_as("segments"),
        bounded="Its classes have a softmax, its masks a sigmoid.",
        aligned=_vectors,
        same=lambda outputs: outputs > 0,
        counted="signs of numbers",
        classes=lambda model: model.layers[-1].units,
    ),
    "distances": Kind(  # of each patch from normal ones, `(batch, rows, columns)`
        names=("distances",),
        named=_as("distances"),
        bounded="Distances have no probabilities.",
        aligned=_vectors,
        same=lambda outputs: np.round(outputs, 3),
        counted="distances to three decimals",
    ),
    "image": Kind(
        names=("pixels",),
        named=_as("pixels"),
        bounded="An image has no probabilities.",
        aligned=_vectors,
        same=np.rint,
        counted="pixel values",
    ),
}


NAMELESS = ("distances", "embeddings", "pairs")  # kinds whose numbers are not of classes, however many there are


def kind_of(model):
    """Returns the `Kind` of a model's output: what its last layer says, else its metadata, else its input.

    Vectors of texts are `"embeddings"`, all others `"classes"`.

    Raises:
        ValueError: For a kind that is in no row.
    """
    name = name_of(model)
    if name not in KINDS:
        raise ValueError(
            f"The output of {model.name!r} must be one of {', '.join(map(repr, KINDS))}. Load the recipe file that "
            f"defines another kind first. Received: {name!r}"
        )
    return KINDS[name]


def note(model, name):
    """Writes the kind of a model's output into its metadata, where its last layer does not say it."""
    if name_of(model) != name:
        keeper(image_tower(model)).metadata[GIVES] = {model.layers[-1].name: name}


def name_of(model):
    """Returns the name of the kind of a model's output."""
    last = model.layers[-1]
    metadata = getattr(keeper(image_tower(model)), "metadata", {})
    usual = "embeddings" if [*inputs_of(model)] == ["texts"] else "classes"
    name = getattr(last, "gives", None) or metadata.get(GIVES, {}).get(last.name)
    return name or kind_of_loss(model) or usual


def of_outputs(names):
    """Returns the `Kind` of an exported file by the names of its outputs; numbers by name if there is none."""
    return next((kind for kind in KINDS.values() if set(names) <= set(kind.names)), KINDS["classes"])
