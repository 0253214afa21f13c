"""COCO's average precision, of boxes and of masks, computed by pycocotools. Lin et al. 2014 (arXiv:1405.0312)."""

import contextlib
import io

import numpy as np

from keras_vit.utils import extras

HALF = 0.5  # least IoU of a match, in the score of an image
MOST = 100  # predictions of each class in an image that count


def need():
    """Raises ImportError unless pycocotools is installed."""
    extras.need("COCO's average precision", "detection", "pycocotools")


def precision_of(kind, images, classes, truth, found, most=MOST):
    """Returns precision by IoU, recall and class, `(10, 101, classes)`; -1 for a class without true objects.

    IoUs are 0.5 to 0.95, recalls 0 to 1, both evenly spaced. Objects of any size count.

    Args:
        kind: `"bbox"` or `"segm"`.
        images: List of dictionaries: `"id"`, and of masks `"height"` and `"width"`.
        classes: Number of classes.
        truth: List of dictionaries, one an object: `"image_id"`, `"category_id"`, `"iscrowd"`, `"area"`, and `"bbox"`,
            left, top, width and height, or `"segmentation"`, as `run_lengths` returns it. pycocotools adds to them.
        found: List of such dictionaries with `"score"`, without `"area"` and `"iscrowd"`; or of boxes an array,
            `(n, 7)`: image, left, top, width, height, score, class. Of equal scores the earlier is matched first.
        most: Predictions of each class in an image that count, at most.
    """
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    if not len(truth):
        return np.full((10, 101, classes), -1.0)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its progress
        coco = COCO()
        annotations = [{**each, "id": i} for i, each in enumerate(truth, 1)]
        categories = [{"id": i} for i in range(classes)]
        coco.dataset = {"images": images, "categories": categories, "annotations": annotations}
        coco.createIndex()
        results = coco.loadRes(found) if len(found) else _empty(coco)
        evaluation = COCOeval(coco, results, kind)
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.params.maxDets = [most]
        evaluation.evaluate()
        evaluation.accumulate()
    return evaluation.eval["precision"][..., 0, 0]


def _empty(coco):
    """Returns COCO results without objects: `loadRes` fails on an empty array."""
    results = type(coco)()
    results.dataset = {**coco.dataset, "annotations": []}
    results.createIndex()
    return results


def scores(precision, names, mean, half):
    """Returns scores by name, from the result of `precision_of` and the names of the classes.

    `mean` and `half` name those of all classes: the mean over IoUs, and that at 0.5. `"ap50 NAME"` is that of a class.
    """
    each = {f"ap50 {name}": _mean(precision[:1, :, i]) for i, name in enumerate(names)}
    both = {mean: _mean(precision), half: _mean(precision[:1])}
    return both | {name: value for name, value in each.items() if not np.isnan(value)}


def figures(precision, names):
    """Returns figures by caption, from the result of `precision_of` and the names of the classes."""
    from keras_vit import plots

    if (precision < 0).all():
        return {}
    title = "Precision over recall of each class, at an intersection over union of 0.5."
    return {title: plots.plot_precision(precision[0], names)}


def _mean(precision):
    measured = precision[precision > -1]
    return float(measured.mean()) if measured.size else (0.0 if precision.ndim == 3 else np.nan)


def f1(shares, scores, ignore):
    """Returns F1 of one image; 1 without true objects and predictions.

    The prediction with the highest score is matched first, with the true object of its class and the largest IoU.

    Args:
        shares: Of each prediction and true object the IoU, or of a region to ignore the share of the prediction inside
            it; 0 where their classes differ, `(m, n)`.
        scores: Scores of the predictions, `(m,)`.
        ignore: Whether each true object is a region to ignore, `(n,)`. Unmatched predictions inside it do not count.
    """
    inside = (shares * ignore).max(1, initial=0) >= HALF
    shares = shares * ~ignore
    right = left_out = 0
    for i in np.argsort(-scores, kind="stable"):
        if shares[i].max(initial=0) >= HALF:
            shares[:, shares[i].argmax()] = 0
            right += 1
        else:
            left_out += inside[i]
    count = np.sum(~ignore) + len(scores) - left_out
    return float(2 * right / count) if count else 1.0
