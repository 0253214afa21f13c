"""COCO's average precision of boxes."""

import contextlib
import io

import numpy as np
from keras.ops import convert_to_numpy

from keras_vit.models.box_outputs import likely
from keras_vit.models.outputs import ignored
from keras_vit.tasks.detect.overlap import iou
from keras_vit.tasks.tally import Tally
from keras_vit.utils import extras

HALF = 0.5  # least IoU of a match, in the score of an image


class BoxTally(Tally):
    """Average precision, computed by pycocotools: mean over IoUs of 0.5 to 0.95, at 0.5, and at 0.5 of each class.

    Lin et al. 2014 (arXiv:1405.0312); at most 100 boxes of each class in an image count. Boxes inside a region to
    ignore, such as a crowd of their class, are neither right nor wrong. Memory grows with the boxes.

    Args:
        class_names: Names of the classes.
        score: Least score of a box that counts in the score of an image, F1 at an IoU of 0.5.
        several: Whether a box may have several classes; see `likely`.

    Raises:
        ImportError: If pycocotools is not installed.
    """

    def __init__(self, class_names, score=0.5, several=False):
        super().__init__()
        extras.need("COCO's average precision", "detection", "pycocotools")
        self.names = tuple(class_names)
        self.score = score
        self.several = several
        self.images = 0
        self.truth = []
        self.found = []  # rows: image, left, top, width, height, score (of truth: ignore), class

    def add(self, examples, outputs):
        """Counts a batch, and returns the F1 of each image, `(batch,)`, 0..1.

        Args:
            examples: `"images"`, `(batch, height, width, channels)`, of which the size is read, and
                `"bounding_boxes"`, float32 `(batch, most, 5)`, as in `PointLoss`.
            outputs: Boxes and scores, `(batch, most, 4 + classes)`, as in `Detect`.
        """
        height, width = examples["images"].shape[1:3]
        scores = []
        for boxes, output in zip(examples["bounding_boxes"], np.array(outputs, "float64")):
            boxes = boxes[boxes[:, 4] != -1].astype("float64")
            edges, classes = boxes[:, :4] * (height, width, height, width), boxes[:, 4].astype(int)
            ignore = classes < 0
            classes = np.where(ignore, ignored(classes), classes)
            output[:, :4] *= (height, width, height, width)
            found, label, best = likely(output, 0, self.several)
            index = np.full((len(boxes), 1), self.images), np.full((len(found), 1), self.images)
            self.truth.append(np.hstack([index[0], sides(edges), ignore[:, None], classes[:, None]]))
            self.found.append(np.hstack([index[1], sides(found), best[:, None], label[:, None]])[best > 0])
            sure = best >= max(self.score, 1e-6)
            scores.append(f1((edges, classes), (found[sure], label[sure]), best[sure], ignore))
            self.images += 1
        return np.asarray(scores)

    def result(self):
        precision = self._precision()
        mean, half = (_mean(part) for part in (precision, precision[:1]))
        each = {f"ap50 {name}": _mean(precision[:1, :, i]) for i, name in enumerate(self.names)}
        return {"map": mean, "map50": half, **{name: value for name, value in each.items() if not np.isnan(value)}}

    def figures(self):
        from keras_vit import plots

        precision = self._precision()
        if (precision < 0).all():
            return {}
        title = "Precision over recall of each class, at an intersection over union of 0.5."
        return {title: plots.plot_precision(precision[0], self.names)}

    def _precision(self):
        """Returns precision by IoU, recall and class, `(10, 101, classes)`; -1 for a class without true boxes."""
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        truth, predictions = (np.concatenate(rows) if rows else np.zeros((0, 7)) for rows in (self.truth, self.found))
        precision = np.full((10, 101, len(self.names)), -1.0)
        if not len(truth):
            return precision
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its progress
            coco = COCO()
            coco.dataset = {
                "images": [{"id": i} for i in range(self.images)],
                "categories": [{"id": i} for i in range(len(self.names))],
                "annotations": [
                    dict(zip(("image_id", "bbox", "category_id"), (int(row[0]), row[1:5].tolist(), int(row[6]))))
                    | {"id": i + 1, "area": row[3] * row[4], "iscrowd": int(row[5])}
                    for i, row in enumerate(truth)
                ],
            }
            coco.createIndex()
            results = coco.loadRes(predictions) if len(predictions) else _empty(coco)
            evaluation = COCOeval(coco, results, "bbox")
            evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
            evaluation.params.maxDets = [100]
            evaluation.evaluate()
            evaluation.accumulate()
        return evaluation.eval["precision"][..., 0, 0]


def _empty(coco):
    """Returns COCO results without boxes: `loadRes` fails on an empty array."""
    results = type(coco)()
    results.dataset = {**coco.dataset, "annotations": []}
    results.createIndex()
    return results


def sides(edges):
    """Returns left, top, width and height, `(n, 4)`, from edges, `(n, 4)`: top, left, bottom, right."""
    return np.stack([edges[:, 1], edges[:, 0], edges[:, 3] - edges[:, 1], edges[:, 2] - edges[:, 0]], axis=-1)


def _mean(precision):
    measured = precision[precision > -1]
    return float(measured.mean()) if measured.size else (0.0 if precision.ndim == 3 else np.nan)


def f1(truth, predictions, scores, ignore=None):
    """Returns F1 of the boxes of one image; 1 without true and predicted boxes.

    Args:
        truth: True boxes: edges in pixels, `(n, 4)`, and classes, integers, `(n,)`.
        predictions: Predicted boxes: edges in pixels, `(m, 4)`, and classes, integers, `(m,)`.
        scores: Scores of the predictions, `(m,)`. The box with the highest score is matched first, with the true box of
            its class and the largest IoU.
        ignore: Whether each true box is a region to ignore, `(n,)`. Unmatched predictions inside it do not count.
    """
    ignore = np.zeros(len(truth[1]), bool) if ignore is None else ignore
    alike = predictions[1][:, None] == truth[1][None]
    shares = convert_to_numpy(iou(predictions[0], truth[0])) * alike * ~ignore
    inside = (overlap(predictions[0], truth[0]) * alike * ignore).max(1, initial=0) >= HALF
    right = left_out = 0
    for i in np.argsort(-scores, kind="stable"):
        if shares[i].max(initial=0) >= HALF:
            shares[:, shares[i].argmax()] = 0
            right += 1
        else:
            left_out += inside[i]
    count = np.sum(~ignore) + len(predictions[1]) - left_out
    return float(2 * right / count) if count else 1.0


def overlap(boxes, regions):
    """Returns the share of each box, `(m, 4)`, inside each region, `(n, 4)`: `(m, n)`, 0..1; edges as in `f1`."""
    low = np.maximum(boxes[:, None, :2], regions[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], regions[None, :, 2:])
    sizes = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    return np.prod(np.maximum(high - low, 0), axis=-1) / np.maximum(sizes, 1e-9)[:, None]
