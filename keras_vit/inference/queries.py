"""What an open detector looks for: names, or examples in pictures."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vit.explain.class_vectors import SLOT, class_vectors
from keras_vit.explain.embedding import unit
from keras_vit.explain.towers import Towers
from keras_vit.inference.overlaps import generalized, overlaps
from keras_vit.models.open_detector import PARTS, features_of, is_open_detector
from keras_vit.models.outputs import check_labels
from keras_vit.preparing.preprocessing import Preparation, listed
from keras_vit.utils import checks
from keras_vit.utils.feeding import run

CLOSE = 0.8  # share of the best overlap from which on a patch may stand for the whole picture


class Queries(NamedTuple):
    """What `detect` looks for, by embeddings."""

    classes: list[str]  # names, in the order of the vectors
    vectors: np.ndarray  # float32, (classes, width), of length 1


class Seen(NamedTuple):
    """What an open detector sees in the patches of images: a last batch is filled up, and has more rows than sizes."""

    features: Any  # (rows, patches, width)
    boxes: np.ndarray  # (rows, patches, 4): top, left, bottom, right, as shares
    sizes: list  # (height, width) of each image


class Eyes:
    """The image tower and the heads of an open detector.

    Args:
        model: As in `keras_vit.detect`; errors as there.
    """

    def __init__(self, model):
        checks.model(model)
        if not is_open_detector(model):
            raise ValueError(
                "`model` must find what texts name, such as from_pretrained('hf://google/owlv2-base-patch16-ensemble')."
                f" Received: {model.name!r}"
            )
        self.image, self.text, self.heads = map(model.get_layer, PARTS)
        self.preparation = Preparation(self.image)
        resize = self.preparation.rule["resize"]
        if resize not in ("direct", "pad"):
            raise ValueError(
                "`model` must see all of an image, and the metadata of its first layer say that it is cut. "
                f"Received: resize={resize!r}"
            )
        self.square = resize == "pad"

    def see(self, images, batch_size):
        """Yields a `Seen` for each few images; a last batch is filled up, so that nothing is compiled for it."""
        for pixels, sizes in batches(self.preparation, images, batch_size):
            features = features_of(self.heads, run(self.image, pixels))
            boxes = keras.ops.convert_to_numpy(self.heads.get_layer("places")(features))
            yield Seen(features, boxes, sizes)

    def sides(self, size):
        """Returns by what boxes are multiplied to be in pixels of an image of `(height, width)`: twice both sides."""
        return np.tile([max(size)] * 2 if self.square else size, 2).astype("float32")


def batches(preparation, images, batch_size):
    """Yields the pixels of each few images, `(batch, height, width, channels)`, and each image's `(height, width)`.

    A last batch is filled up: it has more rows than sizes.

    Args:
        preparation: `Traits.preparation` of a model.
        images: As in `detect`.
        batch_size: Number of images in a batch.

    Raises:
        ValueError: For an empty list; and as `preprocess`.
    """
    images = listed(images)
    if not images:
        raise ValueError("`images` must contain an image. Received: an empty list")
    for first in range(0, len(images), batch_size):
        some = [preparation.sized(image) for image in images[first : first + batch_size]]
        pixels = np.stack([pixels for _, pixels in some])
        missing = batch_size - len(some) if first else 0
        yield np.concatenate([pixels, np.repeat(pixels[-1:], missing, axis=0)]), [size for size, _ in some]


def queries_for(eyes, classes, tokens, prompts):
    """Returns the `Queries` for `classes`, which are names, or such already; arguments and errors as in `detect`."""
    if isinstance(classes, Queries):
        units = eyes.heads.get_layer("logits").units
        vectors = np.asarray(classes.vectors, "float32")
        if vectors.shape != (len(classes.classes), units) or not np.isfinite(vectors).all():
            raise ValueError(
                f"Queries must be finite, ({len(classes.classes)}, {units}), of this model. "
                f"Received: shape={vectors.shape}"
            )
        return Queries(list(classes.classes), unit(vectors))
    towers = Towers(eyes.image, eyes.text, 1.0, 0.0)  # independent probabilities: one class will do
    return Queries(*class_vectors(towers, classes, tokens, SLOT if prompts is None else prompts))


def example_queries(model: keras.Model, examples: Mapping[str, Any], *, batch_size: int = 1) -> Queries:
    """Embeds examples of things, for `detect` and `zero_shot_detector` to look for in place of names.

    Minderer et al. 2022 (arXiv:2205.06230), section 3.2 and appendix A: of an example, the embedding of one patch is
    taken. Of a picture alone, OWLv2 takes the patch that most likely has an object; OWL-ViT, among the patches whose
    boxes nearly cover the picture, the one least like the mean of all. That choice is often poor: pass a box, and the
    patch whose own box overlaps it most is taken.

    Args:
        model: As in `detect`.
        examples: A dictionary from names to examples, one or a list. An example is an image as in `detect`; or a pair
            of an image and a box in it, `(left, top, right, bottom)` in pixels, or the number of a patch, such as one
            of `Detections.patches`.
        batch_size: Number of images that are computed at once; a smaller last batch costs as much as a whole one.

    Returns:
        `Queries`. Of several examples of a name the mean of their embeddings, each of length 1, is taken, and has
        length 1 again.

    Raises:
        TypeError, ValueError: As `detect`; for a name without examples, a box without an area, or a patch that the
            model does not have.

    Example:

    >>> queries = example_queries(model, {"valve": ["valve.jpg", ("plant.jpg", (120, 40, 300, 210))]})
    >>> found = detect(model, "photo.jpg", queries)
    """
    eyes = Eyes(model)
    checks.positive(batch_size=batch_size)
    names, images, places = _listed(examples)
    chosen = []
    for seen in eyes.see(images, batch_size):
        raw = keras.ops.convert_to_numpy(eyes.heads.get_layer("logits").embed(seen.features))
        objects = objectness_of(eyes.heads, seen.features)
        for i, size in enumerate(seen.sizes):
            place = places[len(chosen)]
            patch = patch_of(raw[i], seen.boxes[i], None if objects is None else objects[i], place, eyes.sides(size))
            chosen.append(raw[i, patch])
    vectors, classes = unit(np.stack(chosen)), list(examples)
    means = [vectors[[name == each for each in names]].mean(0) for name in classes]
    return Queries(classes, unit(np.stack(means)))


def _listed(examples):
    """Returns the names, the images and the places of all examples, lists of one length."""
    if not isinstance(examples, Mapping) or not examples:
        raise ValueError(f"`examples` must map names to images. Received: {checks.shown(examples):.100}")
    if wrong := [name for name in examples if not isinstance(name, str) or not name.strip()]:
        raise ValueError(f"Each name of `examples` must be a text. Received: {checks.shown(wrong[0]):.100}")
    check_labels(examples)
    names, images, places = [], [], []
    for name, several in examples.items():
        several = [several] if isinstance(several, tuple) else listed(several)
        if not several:
            raise ValueError(f"Each name must have an example. Received: none of {name!r}")
        for example in several:
            image, place = example if isinstance(example, tuple) and len(example) == 2 else (example, None)
            names.append(name)
            images.append(image)
            places.append(None if place is None else _checked(place))
    return names, images, places


def _checked(place):
    """Returns a box as a float32 array, or the number of a patch."""
    if isinstance(place, (int, np.integer)) and not isinstance(place, bool):
        return int(place)
    try:
        box = np.asarray(place, "float32")
    except (TypeError, ValueError):
        box = np.empty(0)
    if box.shape != (4,) or not np.isfinite(box).all() or (box[:2] >= box[2:]).any():
        raise ValueError(
            "A box must be left, top, right and bottom in pixels, with an area, or the number of a patch. "
            f"Received: {checks.shown(place):.100}"
        )
    return box


def objectness_of(heads, features):
    """Returns whether each patch has an object, logits `(images, patches)`; `None` of a model without that head."""
    if all(layer.name != "objectness" for layer in heads.layers):
        return None
    return keras.ops.convert_to_numpy(heads.get_layer("objectness")(features))


def patch_of(raw, boxes, objects, place, sides):
    """Returns the number of the patch that stands for an example.

    Args:
        raw: Embeddings of its patches, `(patches, width)`.
        boxes: Their boxes, as shares.
        objects: Their objectness, or `None`.
        place: A box in pixels, a number, or `None` for all of the picture.
        sides: Height and width of the picture, twice, in pixels for a share of 1.
    """
    if isinstance(place, int):
        if not 0 <= place < len(raw):
            raise ValueError(f"The patch of an example must be below {len(raw)}. Received: {place}")
        return place
    if place is not None:
        return _overlaps(boxes, place[[1, 0, 3, 2]] / sides).argmax()
    if objects is not None:
        return objects.argmax()
    shares = _overlaps(boxes, np.array([0, 0, 1, 1], "float32"))
    among = np.flatnonzero(shares >= min(CLOSE * shares.max(), shares.max()))
    return among[(raw[among] @ raw.mean(0)).argmin()]


def _overlaps(boxes, box):
    """Returns the overlap of boxes with one, `(boxes,)`: generalized, and so below 0, if none overlaps."""
    shares = overlaps(boxes, box)
    return shares if shares.any() else generalized(boxes, box)
