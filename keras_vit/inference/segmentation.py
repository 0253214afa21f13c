"""Segments of photos: what is where, by a model with masks of queries, such as EoMT, or of boxes, as RF-DETR's."""

import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import keras
import numpy as np

from keras_vit.models import segment_outputs
from keras_vit.models.inputs import metadata_of
from keras_vit.models.segment_outputs import Frame
from keras_vit.preparing.preprocessing import listed
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.feeding import run

COCO, COCO_THINGS = 133, 80  # classes of COCO panoptic; the first ones are things
KINDS = ("semantic", "instance", "panoptic")
AT_ONCE = 4  # windows
MOST_WINDOWS = 32  # of a photo
THRESHOLDS = {"instance": 0.5, "panoptic": 0.8}
OBJECTS = ("instance", "panoptic")
PREPARED = {"windows": ("semantic",), "padded": OBJECTS, "whole": OBJECTS}  # kinds by how the source prepares photos


class Segments(NamedTuple):
    """The segments of a photo.

    - `map`: integers, `(height, width)` of the photo. Of kind `"semantic"` the class of each pixel, else the `"id"` of
      its segment, or -1 for none.
    - `segments`: a dictionary for each segment, in the order of ids: `"id"`, its number in the map; `"class"`, the
      number of its class; `"label"`, the name; `"area"`, its pixels in the map, which may be 0 if other instances cover
      it; and `"score"` from 0 to 1, but for `"semantic"`.
    """

    map: np.ndarray
    segments: list[dict[str, Any]]


def segment(
    model: keras.Model,
    photos: Any,
    kind: Literal["semantic", "instance", "panoptic"],
    *,
    threshold: float | None = None,
    mask_threshold: float = 0.5,
    overlap_threshold: float = 0.8,
    stuff: Sequence[int | str] | None = None,
) -> list[Segments]:
    """Finds the segments of photos of any size: the class of each pixel, instances, or things and stuff.

    Kerssies et al. 2025 (arXiv:2503.19108, "EoMT"). Photos are prepared, and maps made, as transformers'
    `EomtImageProcessor` does. For `"semantic"` the shorter side is resized to the model's; windows along the longer
    side are averaged. Else a photo is resized to fit into the model's image, and the rest is black; for a model that
    `Segment` trained it is resized to the model's size. A detector with a
    mask for each box, such as RF-DETR's (arXiv:2511.09554), finds instances: the photo is resized to the model's size,
    and the best instances come first.

    Args:
        model: A model such as `from_pretrained("hf://tue-mps/coco_panoptic_eomt_large_640")`, or of RF-DETR's files
            with masks. It takes square images.
        photos: As in `keras_vit.preprocess`: files, or arrays of pixels from 0 to 255, or one of them.
        kind: `"semantic"`: a class for each pixel. `"instance"`: objects; a later one covers an earlier one, and of a
            detector none covers another.
            `"panoptic"`: objects, and regions such as sky; each pixel belongs to one or none. It must be what the model
            was trained for.
        threshold: Lowest score of a segment, 0 or more and below 1. `None` is 0.5 for instances; for `"panoptic"` 0.8.
        mask_threshold: Of `"panoptic"`, lowest probability of a pixel in a segment, below 1.
        overlap_threshold: Of `"panoptic"`, the share of its pixels that a segment must keep against others, below 1.
        stuff: Of `"panoptic"`, names or numbers of the classes whose regions share one segment. `None` is right for
            models that `Segment` trained, and for the 133 classes of COCO, which are stuff from the 81st on; others
            need a list, which may be empty.

    Returns:
        A list with a `Segments` for each photo.

    Raises:
        ValueError: For another model, a kind that it was not trained for, or a class that it does not have; for a photo
            that is extremely long, or one that `keras_vit.preprocess` refuses.
        FileNotFoundError: If a file does not exist.

    Example:

    >>> found = segment(model, "street.jpg", "panoptic")[0]
    >>> [(each["label"], round(each["score"], 2)) for each in found.segments]
    [('car', 0.98), ('road', 0.93)]
    """
    checks.model(model)
    checks.one_of("kind", kind, KINDS)
    given = {} if threshold is None else {"threshold": threshold}
    checks.rate(**given, mask_threshold=mask_threshold, overlap_threshold=overlap_threshold)
    about = Traits(model)
    boxed = about.gives == "instances"
    if not boxed and (about.gives != "segments" or not hasattr(model.layers[-1], "queries")):
        raise ValueError(
            "`model` must have a class and a mask for each query, as EoMT, or a mask for each box, as RF-DETR. "
            f"Received: {model.name!r}"
        )
    _check(about, kind, ("instance",) if boxed else PREPARED.get(about.rule.get("photos"), KINDS))
    names = about.labels or tuple(map(str, range(about.classes)))
    options = {"threshold": THRESHOLDS.get(kind) if threshold is None else threshold}
    if kind == "panoptic":
        options |= {"mask_threshold": mask_threshold, "overlap_threshold": overlap_threshold}
        options["stuff"] = _stuff(metadata_of(model).get("stuff") if stuff is None else stuff, names)
    found = []
    for photo in listed(photos):
        if kind == "semantic":
            classes = _semantic(about, photo)
            present = np.unique(classes).tolist()
            segments = [{"id": i, "class": i} for i in present]
        elif boxed:
            classes, segments = _boxed(about, photo, **options)
        else:
            make = segment_outputs.instance_map if kind == "instance" else segment_outputs.panoptic_map
            classes, segments = make(*_fitted(about, photo), **options)
        areas = np.bincount(classes[classes >= 0].ravel(), minlength=len(names))
        found.append(Segments(classes, [_entry(each, names, areas) for each in segments]))
    return found


def _entry(segment, names, areas):
    """Returns a segment with the name of its class and its area."""
    number = segment["id"]
    score = {"score": segment["score"]} if "score" in segment else {}
    area = int(areas[number]) if number < len(areas) else 0
    return {"id": number, "class": segment["class"], "label": names[segment["class"]], **score, "area": area}


def _check(about, kind, allowed):
    """Raises ValueError unless a model sees square images, whole, and is for this kind."""
    rule = about.rule
    if kind not in allowed:
        raise ValueError(
            f"`kind` must be {' or '.join(map(repr, allowed))}: that is what the model's source was made for. "
            f"Received: kind={kind!r}"
        )
    square = about.size[0] == about.size[1] or rule.get("photos") == "whole"
    if not square or rule["resize"] != "direct":
        raise ValueError(
            f"`model` must take square images that are not cut. Received: size={about.size}, resize={rule['resize']!r}"
        )


def _stuff(stuff, names):
    """Returns the numbers of the classes of stuff, a set."""
    if stuff is None and len(names) == COCO:
        return set(range(COCO_THINGS, COCO))
    if stuff is None:
        raise ValueError(
            f"`stuff` must list the classes without instances, such as sky: no file names those of {len(names)} "
            "classes; () is for none. Received: stuff=None"
        )
    numbers = set()
    for each in checks.sequence("stuff", stuff):
        number = names.index(each) if each in names else each
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(names):
            raise ValueError(
                f"`stuff` must have names of classes, or numbers from 0 to {len(names) - 1}. Received: "
                f"{checks.shown(each)}"
            )
        numbers.add(number)
    return numbers


def whole_size(shape, side, longest=None):
    """Returns the size to which transformers resizes a photo: the shorter side to `side`, the longer rounded down.

    Args:
        shape: `(height, width)` of the photo.
        side: Pixels of the shorter side.
        longest: Most pixels of the longer side; the shorter one is rounded then.
    """
    short, long = min(shape), max(shape)
    exact = longest * short / long if longest is not None and long / short * side > longest else side
    if short == round(exact):
        return tuple(shape)
    pair = round(exact), int(exact * long / short)
    return pair if shape[0] <= shape[1] else pair[::-1]


def windows(preparation, photo):
    """Returns a photo cut into windows along its longer side, as for semantic maps.

    Args:
        preparation: `Traits.preparation` of a model of square images.
        photo: A file or an array, as in `segment`.

    Returns:
        `(height, width)` of the photo; float32 array of windows, `(windows, side, side, channels)`; where they start
        along the longer side; and the axis of that side.
    """
    side = preparation.size[0]

    def size_of(shape):
        size = whole_size(shape, side)
        if max(size) > MOST_WINDOWS * side:
            _refuse_long(photo, shape)
        return size

    shape, pixels = preparation.resized(photo, size_of)
    axis = int(shape[0] <= shape[1])
    starts = segment_outputs.window_starts(pixels.shape[axis], side)
    parts = [pixels.take(range(start, start + side), axis) for start in starts]
    return shape, np.stack(parts), starts, axis


def padded(preparation, photo):
    """Returns a photo that is resized to fit into a model's image, as for instances, and its `Frame`.

    The image is float32, `(side, side, channels)`, and 0 right of and below the photo. Arguments are as in `windows`.
    """
    side = preparation.size[0]

    def size_of(shape):
        size = whole_size(shape, side, side)
        if min(size) < 1:
            _refuse_long(photo, shape)
        return size

    shape, pixels = preparation.resized(photo, size_of)
    inside = pixels.shape[:2]
    rest = [(0, side - have) for have in inside]
    return np.pad(pixels, (*rest, (0, 0))), Frame((side, side), inside, tuple(shape))


def _refuse_long(photo, shape):
    name = repr(str(photo)) if isinstance(photo, (str, os.PathLike)) else "an array"
    raise ValueError(
        f"A photo must be at most {MOST_WINDOWS} times as long as wide: cut it. Received: {name} of {shape[1]} x "
        f"{shape[0]} pixels"
    )


def _semantic(about, photo):
    """Returns the class of each pixel of a photo."""
    shape, parts, starts, axis = windows(about.preparation, photo)

    def scores():
        for some in (slice(i, i + AT_ONCE) for i in range(0, len(parts), AT_ONCE)):
            for each in zip(*_queries(about, parts[some])):
                yield segment_outputs.semantic_scores(*each, about.size)

    return segment_outputs.semantic_map(scores(), starts, axis, shape)


def _fitted(about, photo):
    """Returns the logits of the classes and the masks of a photo, and its `Frame`."""
    if about.rule.get("photos") == "whole":  # as in training here
        shape, image = about.preparation.resized(photo, lambda shape: about.size)
        frame = Frame(about.size, about.size, tuple(shape))
    else:
        image, frame = padded(about.preparation, photo)
    classes, masks = _queries(about, image[None])
    return classes[0], masks[0], frame


def _boxed(about, photo, threshold):
    """Returns the map and the segments of a photo by a detector with masks."""
    shape, image = about.preparation.resized(photo, lambda shape: about.size)
    [output] = run(about.model, image[None])
    size = about.model.layers[-1].mask_size
    return segment_outputs.boxed_map(output, about.classes, tuple(shape), threshold, mask_size=size)


def _queries(about, images):
    """Returns the logits of the queries' classes and of their masks."""
    return segment_outputs.unpacked(run(about.model, images), about.classes, about.size)
