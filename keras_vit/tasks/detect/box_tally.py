"""COCO's average precision of boxes."""

import numpy as np
from keras.ops import convert_to_numpy

from keras_vit.models.box_outputs import likely
from keras_vit.models.outputs import ignored
from keras_vit.tasks import average_precision
from keras_vit.tasks.detect.overlap import iou
from keras_vit.tasks.tally import Tally


class BoxTally(Tally):
    """Average precision, computed by pycocotools: mean over IoUs of 0.5 to 0.95, at 0.5, and at 0.5 of each class.

    Lin et al. 2014 (arXiv:1405.0312); at most 100 boxes of each class in an image count, unless `every`. Boxes inside a
    region to ignore, such as a crowd of their class, are neither right nor wrong. Memory grows with the boxes.

    Args:
        class_names: Names of the classes.
        score: Least score of a box that counts in the score of an image, F1 at an IoU of 0.5.
        several: Whether a box may have several classes; see `likely`.
        every: Whether all boxes count, as those of a picture that is larger than the model.

    Raises:
        ImportError: If pycocotools is not installed.
    """

    def __init__(self, class_names, score=0.5, several=False, every=False):
        super().__init__()
        average_precision.need()
        self.names = tuple(class_names)
        self.score = score
        self.several = several
        self.every = every
        self.images = 0
        self.truth = []
        self.found = []  # rows: image, left, top, width, height, score (of truth: ignore), class

    def add(self, examples, outputs):
        """Counts a batch, and returns the F1 of each image, `(batch,)`, 0..1.

        Args:
            examples: `"images"`, `(batch, ..., height, width, channels)`, of which the size is read, and
                `"bounding_boxes"`, float32 `(batch, most, 5)`, as in `PointLoss`.
            outputs: Boxes and scores, `(batch, most, 4 + classes)`, as in `Detect`.
        """
        height, width = examples["images"].shape[-3:-1]
        scores = []
        for boxes, output in zip(examples["bounding_boxes"], outputs):
            output = np.array(output, "float64")
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
        return average_precision.scores(self._precision(), self.names, "map", "map50")

    def figures(self):
        return average_precision.figures(self._precision(), self.names)

    def _precision(self):
        truth, predictions = (np.concatenate(rows) if rows else np.zeros((0, 7)) for rows in (self.truth, self.found))
        objects = [
            dict(zip(("image_id", "bbox", "category_id"), (int(row[0]), row[1:5].tolist(), int(row[6]))))
            | {"area": row[3] * row[4], "iscrowd": int(row[5])}
            for row in truth
        ]
        images = [{"id": i} for i in range(self.images)]
        most = len(predictions) if self.every else average_precision.MOST
        return average_precision.precision_of("bbox", images, len(self.names), objects, predictions, most)


def sides(edges):
    """Returns left, top, width and height, `(n, 4)`, from edges, `(n, 4)`: top, left, bottom, right."""
    return np.stack([edges[:, 1], edges[:, 0], edges[:, 3] - edges[:, 1], edges[:, 2] - edges[:, 0]], axis=-1)


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
    shares = convert_to_numpy(iou(predictions[0], truth[0]))
    shares = np.where(ignore, overlap(predictions[0], truth[0]), shares) * alike
    return average_precision.f1(shares, scores, ignore)


def overlap(boxes, regions):
    """Returns the share of each box, `(m, 4)`, inside each region, `(n, 4)`: `(m, n)`, 0..1; edges as in `f1`."""
    low = np.maximum(boxes[:, None, :2], regions[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], regions[None, :, 2:])
    sizes = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    return np.prod(np.maximum(high - low, 0), axis=-1) / np.maximum(sizes, 1e-9)[:, None]
