"""Maps of segments from the classes and masks of queries: a class for each pixel, instances, things and stuff.

Kerssies et al. 2025 (arXiv:2503.19108, "EoMT"). The rules are those of transformers' `EomtImageProcessor`. All
functions take NumPy arrays, such as the outputs of an exported file.
"""

import math
from typing import NamedTuple

import numpy as np

from keras_vit.models.box_outputs import likely
from keras_vit.models.map_outputs import predict
from keras_vit.utils import checks
from keras_vit.utils.images import strips


class Frame(NamedTuple):
    """Where a photo is in a model's image: the size of the image, of the part with the photo, and of the photo.

    All are `(rows, columns)`; the part is at the top left.
    """

    image: tuple[int, int]
    inside: tuple[int, int]
    photo: tuple[int, int]


def unpacked(outputs, classes, size):
    """Returns logits of classes and of masks from a model's outputs.

    Args:
        outputs: Array, `(batch, queries, classes + 1 + rows * columns)`.
        classes: Number of classes.
        size: `(height, width)` of the model's images, whose aspect ratio the masks have.

    Returns:
        Float32 arrays `(batch, queries, classes + 1)`, the last of them of no class, and `(batch, rows, columns,
        queries)`, positive inside a mask.

    Raises:
        ValueError: If the numbers after those of classes make no map of this aspect ratio.
    """
    outputs = np.asarray(outputs, "float32")
    count = outputs.shape[-1] - classes - 1 if outputs.ndim == 3 else 0
    rows = round(math.sqrt(max(count, 0) * size[0] / size[1]))
    if count < 1 or not rows or count % rows or rows * size[1] != count // rows * size[0]:
        raise ValueError(
            f"`outputs` must be (batch, queries, {classes} + 1 + rows * columns), with masks of the aspect ratio "
            f"{size[0]} to {size[1]}. Received: shape={outputs.shape}"
        )
    masks = outputs[..., classes + 1 :].reshape(*outputs.shape[:2], rows, count // rows)
    return outputs[..., : classes + 1], masks.transpose(0, 2, 3, 1)


def semantic_scores(class_logits, mask_logits, size):
    """Returns a score for each pixel and class: over the queries, the sum of the class's probability times the mask's.

    Args:
        class_logits: Array, `(queries, classes + 1)`.
        mask_logits: Array, `(rows, columns, queries)`; they are resized bilinearly before the sigmoid.
        size: `(height, width)` of the result: the model's image.

    Returns:
        Float32 array, `(*size, classes)`, 0 or more.
    """
    shares, queries = _softmax(class_logits)[:, :-1], mask_logits.shape[-1]
    scores = np.empty((*size, shares.shape[1]), "float32")
    lines = _neighbors(mask_logits.shape[0], size[0])
    for some in strips(size[0], size[1] * max(queries, shares.shape[1])):
        strip = _along(mask_logits, [each[some] for each in lines], 0)
        scores[some] = _sigmoid(_along(strip, _neighbors(strip.shape[1], size[1]), 1)) @ shares
    return scores


def window_starts(length, side):
    """Returns where windows of a `side` begin that cover a `length`, as many as needed, as a list of integers."""
    count = math.ceil(length / side)
    overlap = (count * side - length) / (count - 1) if count > 1 else 0
    return [int(i * (side - overlap)) for i in range(count)]


def semantic_map(windows, starts, axis, size):
    """Returns the most likely class of each pixel of a photo.

    Windows are averaged where they overlap; the mean is resized bilinearly to the photo.

    Args:
        windows: Results of `semantic_scores`, `(side, side, classes)` each, or an iterable that makes them.
        starts: Where each begins along the longer side, from `window_starts`.
        axis: 0 if the rows of the photo are the longer side, 1 if its columns are.
        size: `(height, width)` of the photo.

    Returns:
        Integers, `(height, width)`, from 0 to the number of classes - 1.
    """
    total = counts = None
    for scores, start in zip(windows, starts):
        if total is None:
            shape = [max(starts) + scores.shape[0] if i == axis else scores.shape[i] for i in (0, 1)]
            total = np.zeros((*shape, scores.shape[2]), "float32")
            counts = np.zeros((*(side if i == axis else 1 for i, side in enumerate(shape)), 1), "float32")
        at = (slice(None),) * axis + (slice(start, start + scores.shape[axis]),)
        total[at] += scores
        counts[at] += 1
    total /= counts
    return predict(total, size)


def instance_map(class_logits, mask_logits, frame, threshold=0.5):
    """Returns the instances of a photo: each query's pixels with a positive logit, if its score is high enough.

    The score is the probability of its best class times the mean probability of these pixels. A later query covers an
    earlier one. A query with no such pixel is left out.

    Args:
        class_logits: Array, `(queries, classes + 1)`.
        mask_logits: Array, `(rows, columns, queries)`; they are resized bilinearly to the image, cut, and resized to
            the photo.
        frame: A `Frame`.
        threshold: Lowest score.

    Returns:
        Map: int32 array, `(height, width)` of the photo, ids of instances from 0, and -1 for nothing. Segments: a list
        of dictionaries with `"id"`, `"class"` and `"score"`, in the order of the ids.
    """
    shares = _softmax(class_logits)[:, :-1]
    labels, best = shares.argmax(-1), shares.max(-1)
    found, segments = np.full(frame.photo, -1, "int32"), []
    for query in np.nonzero(best >= threshold)[0]:  # the mean is at most 1
        logits = _on_photo(mask_logits[..., query], frame)
        mask = logits > 0
        area = np.count_nonzero(mask)
        score = best[query] * _sigmoid(logits[mask]).sum(dtype="float64") / (area + 1e-6)
        if area and score >= threshold:
            found[mask] = len(segments)
            segments.append(_segment(len(segments), labels[query], score))
    return found, segments


def boxed_map(output, classes, photo, threshold=0.5, several=True, mask_size=None):
    """Returns the instances of a photo by a detector with a mask for each box, such as RF-DETR.

    The best come first, and no instance covers an earlier one. One without a pixel of its own is left out.

    Args:
        output: Array, `(most, 4 + classes + rows * columns)`: a box, a score for each class, and the logits of its
            mask, which are resized bilinearly to the photo.
        classes: Number of classes.
        photo: `(height, width)` of the photo.
        threshold: Lowest score; instances have more.
        several: Whether a box may have several classes; see `keras_vit.models.box_outputs.likely`.
        mask_size: `(rows, columns)` of the masks; `None` for square ones.

    Returns:
        As `instance_map`.

    Raises:
        ValueError: If the numbers after those of classes make no map of this size.
    """
    output = np.asarray(output, "float32")
    masks = boxed_masks(output, classes, mask_size)
    numbered = np.concatenate([np.arange(len(output), dtype="float32")[:, None]] * 4 + [output[:, 4 : 4 + classes]], 1)
    rows, labels, scores = likely(numbered, threshold, several)
    found, segments = np.full(photo, -1, "int32"), []
    for query, label, score in zip(rows[:, 0].astype(int), labels, scores):
        mine = (resized(masks[query], photo) > 0) & (found < 0)
        if score > threshold and mine.any():
            found[mine] = len(segments)
            segments.append(_segment(len(segments), label, score))
    return found, segments


def boxed_masks(output, classes, mask_size=None):
    """Returns the logits of masks, `(..., rows, columns)`, of outputs `(..., numbers)`; arguments as in `boxed_map`."""
    count = max(output.shape[-1] - 4 - classes, 0)
    rows, columns = mask_size or (math.isqrt(count), math.isqrt(count))
    if not count or rows * columns != count:
        wanted = "rows * columns" if mask_size is None else f"{rows} * {columns}"
        raise ValueError(f"`output` must be (..., most, 4 + {classes} + {wanted}). Received: shape={output.shape}")
    return output[..., 4 + classes :].reshape(*output.shape[:-1], rows, columns)


def panoptic_map(
    class_logits, mask_logits, frame, stuff=(), *, threshold=0.8, mask_threshold=0.5, overlap_threshold=0.8
):
    """Returns the things and the stuff of a photo: each pixel belongs to one segment, or to none.

    Queries whose best class is none, or has no more than `threshold`, are left out. A pixel goes to the query with the
    highest probability of class times mask, and counts where that of the mask is at least `mask_threshold`. A query
    that owns no more than `overlap_threshold` of the pixels in its mask is dropped.

    Args:
        class_logits, mask_logits, frame: As in `instance_map`.
        stuff: Classes, such as sky, whose queries all share one segment.
        threshold: Probability of a class, from 0 to 1.
        mask_threshold: Probability of a pixel in a mask.
        overlap_threshold: Share of a mask's pixels.

    Returns:
        As `instance_map`; the score is the class's probability, of shared segments that of the first query.
    """
    shares = _softmax(class_logits)
    labels, best = shares.argmax(-1), shares.max(-1)
    kept = np.nonzero((labels != shares.shape[1] - 1) & (best > threshold))[0]
    owner, highest, full = np.zeros(frame.photo, "int32"), np.full(frame.photo, -1, "float32"), []
    for i, query in enumerate(kept):
        inside = _sigmoid(_on_photo(mask_logits[..., query], frame))
        full.append(inside >= mask_threshold)
        higher = best[query] * inside > highest
        owner[higher] = i
        np.maximum(highest, best[query] * inside, out=highest)
    found, segments, shared = np.full(frame.photo, -1, "int32"), [], {}
    for i, query in enumerate(kept):
        mine, label = owner == i, int(labels[query])
        both = mine & full[i]
        if not both.any() or np.count_nonzero(mine) / np.count_nonzero(full[i]) <= overlap_threshold:
            continue
        number = shared.get(label, len(segments))
        if number == len(segments):
            segments.append(_segment(number, label, best[query]))
        if label in stuff:
            shared[label] = number
        found[both] = number
    return found, segments


def _segment(number, label, score):
    return {"id": number, "class": int(label), "score": float(score)}


def _on_photo(logits, frame):
    """Returns the logits of a mask, `(rows, columns)`, at the size of a photo."""
    rows, columns = checks.pair("inside", frame.inside)
    return resized(resized(logits, frame.image)[:rows, :columns], frame.photo)


def resized(x, size):
    """Returns an array, `(rows, columns, ...)`, resized bilinearly to a size, with half-pixel centers."""
    for axis, want in enumerate(size):
        x = _along(x, _neighbors(x.shape[axis], want), axis)
    return x


def positive_part(logits, size):
    """Returns where a mask can be when it is resized as by `resized`, and its logits there.

    A resized logit is between its neighbors, so all those elsewhere are 0 or less.

    Args:
        logits: Array, `(rows, columns)`, positive inside the mask.
        size: `(height, width)` of the result.

    Returns:
        Slices of the rows and of the columns, and an array: `resized(logits, size)` inside them.
    """
    place, x, high = [], logits, logits > 0
    for axis, want in enumerate(size):
        first, second, share = _neighbors(logits.shape[axis], want)
        line = high.any(1 - axis)
        (here,) = np.nonzero(line[first] | line[second])
        place.append(slice(here[0], here[-1] + 1) if len(here) else slice(0))
        x = _along(x, [each[place[axis]] for each in (first, second, share)], axis)
    return tuple(place), x


def _neighbors(have, want):
    """Returns the two samples between which each new one is, with half-pixel centers, and the share of the second."""
    place = np.clip((np.arange(want) + 0.5) * (have / want) - 0.5, 0, have - 1)
    first = place.astype(int)
    return first, np.minimum(first + 1, have - 1), (place - first).astype("float32")


def _along(x, neighbors, axis):
    """Returns an array resized along an axis."""
    first, second, share = neighbors
    share = share.reshape(-1, *[1] * (x.ndim - 1 - axis))
    return np.take(x, first, axis) * (1 - share) + np.take(x, second, axis) * share


def _softmax(logits):
    from scipy.special import softmax

    return softmax(np.asarray(logits, "float32"), axis=-1)


def _sigmoid(logits):
    from scipy.special import expit

    return expit(logits)
