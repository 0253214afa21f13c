"""COCO's average precision of masks."""

import functools

import numpy as np
from scipy.special import expit, softmax

from keras_vit.models.box_outputs import EDGES
from keras_vit.models.segment_outputs import boxed_masks, positive_part, unpacked
from keras_vit.tasks import average_precision
from keras_vit.tasks.average_precision import MOST
from keras_vit.tasks.segment.true_segments import true_segments
from keras_vit.tasks.tally import Tally
from keras_vit.utils import checks
from keras_vit.utils.run_lengths import of_map, run_lengths


class InstanceTally(Tally):
    """Average precision of masks, computed by pycocotools: mean over IoUs of 0.5 to 0.95, at 0.5, and of each class.

    Lin et al. 2014 (arXiv:1405.0312). Masks are compared at the size of the true ones. The 100 best pairs of a query
    and a class are an image's predictions, so that a mask may have several classes, as EoMT is measured (Kerssies et
    al. 2025, arXiv:2503.19108); predicted masks may overlap. Of a detector they are as many pairs as it has boxes, of
    which at most 100 of each class count, as RF-DETR is measured (Robinson et al. 2025, arXiv:2511.09554). A region of
    stuff counts as one object. Masks inside a region to ignore, such as a crowd of their class, are neither right nor
    wrong. Memory grows with the masks, which are kept as run lengths.

    Args:
        class_names: Names of the classes.
        mask_size: `(rows, columns)` of the masks in the outputs.
        score: Least score of a mask that counts in the score of an image, F1 at an IoU of 0.5.
        boxed: Whether outputs are those of a detector, as `BoxesAndMasks` returns them.

    Raises:
        ImportError: If pycocotools is not installed.
        ValueError: For a size that is none.
    """

    def __init__(self, class_names, mask_size, score=0.5, boxed=False):
        super().__init__()
        average_precision.need()
        self.names = tuple(class_names)
        self.mask_size = checks.pair("mask_size", mask_size)
        self.score = score
        self.boxed = boxed
        self.images = []  # (rows, columns) of each
        self.truth = []  # rows: image, class, run lengths, whether it is a crowd
        self.found = []  # rows: image, class, run lengths, score

    def add(self, examples, outputs):
        """Counts a batch, and returns the F1 of each image, `(batch,)`, 0..1.

        Args:
            examples: `"instance_masks"`, maps of objects at their own size: PNG files, `(batch,)`, or int32
                `(batch, rows, columns, 1)`; see `keras_vit.utils.instance_maps`.
            outputs: `(batch, queries, classes + 1 + rows * columns)`, as `QueryMasks` returns them; or `(batch, boxes,
                4 + classes + rows * columns)`, as `BoxesAndMasks`.

        Raises:
            ValueError: For a true mask of a class that is none, or outputs of other numbers of classes or pixels.
        """
        scores = []
        for item, pairs in zip(examples["instance_masks"], self._pairs(outputs)):
            truth = true_segments(item, len(self.names))
            masks = [*of_map(truth.index, range(len(truth.classes)))]
            labels, best, found = pairs(truth.index.shape)
            image = len(self.images)
            self.images.append(truth.index.shape)
            self.truth += [(image, *row) for row in zip(truth.classes.tolist(), masks, truth.crowd.tolist())]
            self.found += [(image, *row) for row in zip(labels.tolist(), found, best.tolist())]
            sure = np.count_nonzero(best >= self.score)  # the best come first
            alike = labels[:sure, None] == truth.classes
            shares = overlaps(found[:sure], masks, truth.crowd) * alike
            scores.append(average_precision.f1(shares, best[:sure], truth.crowd))
        return np.asarray(scores)

    def _pairs(self, outputs):
        """Returns for each image the function from its size to its `best_pairs`."""
        count = len(self.names)
        if self.boxed:
            outputs = np.asarray(outputs, "float32")
            masks = boxed_masks(outputs, count, self.mask_size)
            shares, masks = outputs[..., EDGES : EDGES + count].astype("float64"), np.moveaxis(masks, 1, -1)
        else:
            logits, masks = unpacked(outputs, count, self.mask_size)
            shares = softmax(logits.astype("float64"), axis=-1)[..., :-1]
        how = {"weighted": not self.boxed, "most": shares.shape[1] if self.boxed else MOST}
        return [functools.partial(best_pairs, *each, **how) for each in zip(shares, masks)]

    def result(self):
        return average_precision.scores(self._precision(), self.names, "mask_ap", "mask_ap50")

    def figures(self):
        return average_precision.figures(self._precision(), self.names)

    def _precision(self):
        from pycocotools import mask as coco

        images = [{"id": i, "height": rows, "width": columns} for i, (rows, columns) in enumerate(self.images)]
        keys = ("image_id", "category_id", "segmentation")
        truth = [
            {**dict(zip(keys, row)), "iscrowd": int(crowd), "area": int(coco.area(row[2]))}
            for *row, crowd in self.truth
        ]
        found = [{**dict(zip(keys, row)), "score": score} for *row, score in self.found]
        return average_precision.precision_of("segm", images, len(self.names), truth, found)


def best_pairs(shares, mask_logits, size, weighted=True, most=MOST):
    """Returns the best pairs of a query and a class of an image, the best first.

    Queries without a pixel in the image are left out.

    Args:
        shares: Probabilities of classes, `(queries, classes)`.
        mask_logits: Array, `(rows, columns, queries)`, positive inside a mask.
        size: `(rows, columns)` of the image, to which masks are resized bilinearly.
        weighted: Whether the score is the probability of the class times the mean probability of the mask's pixels, as
            in `segment_outputs.instance_map`; else the first alone, as in `segment_outputs.boxed_map`.
        most: Largest number of pairs.

    Returns:
        Classes, `(n,)`; scores, `(n,)`; and run lengths of the masks, a list.
    """
    pairs, scores, masks = np.zeros((0, 2), int), np.zeros(0), {}
    for query in np.argsort(-shares.max(-1), kind="stable"):
        if len(scores) == most and shares[query].max() < scores[-1]:
            break  # a mask's mean is at most 1: neither this query nor a later one is among the best
        place, logits = positive_part(mask_logits[..., query], size)
        inside = logits > 0
        if not inside.any():
            continue
        mask = np.zeros(size, "uint8", order="F")
        mask[place] = inside
        masks[query] = run_lengths(mask)
        mean = expit(logits[inside]).sum(dtype="float64") / (np.count_nonzero(inside) + 1e-6) if weighted else 1
        these = np.stack([np.full(shares.shape[1], query), np.arange(shares.shape[1])], axis=-1)
        pairs, scores = np.concatenate([pairs, these]), np.concatenate([scores, shares[query] * mean])
        order = np.lexsort((pairs[:, 1], pairs[:, 0], -scores))[:most]  # of equal scores the first query
        pairs, scores = pairs[order], scores[order]
    return pairs[:, 1], scores, [masks[query] for query in pairs[:, 0]]


def overlaps(found, masks, crowd):
    """Returns the IoU of found and true masks, `(m, n)`; of a crowd the share of the found mask inside it.

    Args:
        found: Run lengths of found masks, a list.
        masks: Of true ones.
        crowd: Whether each of them is a crowd, `(n,)`.
    """
    from pycocotools import mask as coco

    if not found or not masks:
        return np.zeros((len(found), len(masks)))
    return coco.iou(found, masks, crowd.astype("uint8").tolist())
