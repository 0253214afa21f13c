"""Compares outputs, boxes and maps of an original and of ours."""

import functools
import gc

import golden_answers
import keras
import numpy as np
import torch

numbers = keras.ops.convert_to_numpy
NAMES = ("torchvision", "Pillow")  # of transformers' processors


def theirs(function, **inputs):
    """Returns an original's outputs."""
    with torch.no_grad():
        return function(**inputs)


def nhwc(x):
    return np.ascontiguousarray(np.moveaxis(x.numpy(), -3, -1))


def prepared(processor, photo):
    """Returns what a processor makes of a photograph, a tensor `(images, 3, height, width)`, with its other results."""
    found = processor(photo, return_tensors="pt")
    return found["pixel_values"], found


def levels(model, processors, photo, mine):
    """Returns how far our pixels, 0 to 255, are from those of each processor, at most and on average."""
    found = {}
    for name, processor in zip(NAMES, processors):
        pixels = golden_answers.pixels(model, nhwc(prepared(processor, photo)[0]))
        apart = np.abs(pixels - mine)
        found[name] = [round(float(apart.max()), 4), round(float(apart.mean()), 6)]
    return found


def outputs(pairs):
    """Returns the largest difference and the largest number of each output; `pairs` are ours and theirs by name."""
    rows = {}
    for name, (mine, original) in pairs.items():
        mine, original = numbers(mine), np.asarray(original)
        if mine.shape != original.shape:
            raise ValueError(f"{name}: {mine.shape} is not {original.shape}")
        rows[name] = {"max_abs_diff": float(np.abs(mine - original).max()), "max_abs": float(np.abs(original).max())}
    return rows


def boxes(mine, original):
    """Compares two lists of boxes in pixels: `(n, 4)`, scores and labels each, in any order."""
    if len(mine[1]) != len(original[1]):
        return {"boxes": [len(mine[1]), len(original[1])]}
    from scipy.optimize import linear_sum_assignment

    apart = [np.abs(np.asarray(a)[:, None].astype("float64") - np.asarray(b)[None]) for a, b in zip(mine, original)]
    apart[0] = apart[0].max(-1)
    order = linear_sum_assignment(apart[0] + 1e3 * apart[1] + 1e4 * (apart[2] > 0))
    pixels, scores, labels = (each[order] for each in apart)
    found = {"boxes": len(scores), "pixels": float(pixels.max()), "scores": float(scores.max())}
    return {**found, "other labels": int((labels > 0).sum())}


def maps(mine, original, segments=((), ())):
    """Compares two maps by the pixels that differ, and their segments: pairs of a class and a score."""
    found = {"values": len(np.unique(original)), "other pixels": int((mine != original).sum()), "of": mine.size}
    if len(segments[0]) != len(segments[1]):
        return {**found, "segments": [len(each) for each in segments]}
    if len(segments[0]):
        (labels, scores), (wanted, right) = (zip(*each) for each in segments)
        found |= {"segments": len(labels), "other labels": int(np.not_equal(labels, wanted).sum())}
        found["scores"] = float(np.abs(np.subtract(scores, right)).max())
    return found


def between(scores, first=10, last=60):
    """Returns a threshold in the widest gap of the best scores, so that rounding drops none."""
    best = np.sort(np.ravel(scores))[::-1][first : last + 1]
    widest = (best[:-1] - best[1:]).argmax()
    return float(best[widest : widest + 2].mean())


def freed(case):
    """A case whose models are gone from memory afterwards."""

    @functools.wraps(case)
    def run(*arguments, **options):
        try:
            return case(*arguments, **options)
        finally:
            keras.utils.clear_session()
            gc.collect()

    return run


def by_photo(rows):
    """Returns the rows of photographs, by their sizes, as one with the largest ratio of a difference."""
    ratios = [each["max_abs_diff"] / each["max_abs"] for row in rows.values() for each in row["outputs"].values()]
    return {"max_relative_diff": max(ratios), "photos": rows}
