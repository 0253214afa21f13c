"""Panoptic quality: objects and regions, each pixel in one of them or in none."""

import numpy as np

from keras_vit.models.segment_outputs import Frame, panoptic_map, unpacked
from keras_vit.tasks.segment.true_segments import true_segments
from keras_vit.tasks.tally import Tally
from keras_vit.utils import checks

HALF = 0.5  # a match has a larger IoU: no segment has two
GROUPS = ("things", "stuff")


class PanopticTally(Tally):
    """Panoptic quality of maps of segments, as panopticapi computes it, counted at the size of each true map.

    Kirillov et al. 2019 (arXiv:1801.00868), section 4. A predicted and a true segment of one class match if their IoU
    is above 0.5. Of a class, `sq` is the mean IoU of its matches, `rq` their F1, `TP / (TP + FP / 2 + FN / 2)`, and
    `pq` the product of both; scores are means over the classes that are in a true or a predicted map. As in
    panopticapi:

    - pixels without a true segment, -1, are void: they are unknown. Unions leave them out, and a predicted segment with
      more than half of its area in them, and in crowds of its class, is no error. Data of things alone, where -1 is a
      known background, have no errors there: `InstanceTally` counts those;
    - crowds, regions where a class is ignored, match nothing, and nothing is missed there.

    Args:
        class_names: Names of the classes.
        mask_size: `(rows, columns)` of the masks in the outputs.
        stuff: Names of the classes that are regions, such as sky, which are one segment in an image.
        threshold, mask_threshold, overlap_threshold: Of `segment_outputs.panoptic_map`, which makes the predicted maps;
            each from 0 to below 1.

    Raises:
        ValueError: For a size that is none, a threshold outside its range, or a class of `stuff` that is none.
    """

    def __init__(self, class_names, mask_size, stuff=(), *, threshold=0.8, mask_threshold=0.5, overlap_threshold=0.8):
        super().__init__()
        self.names = tuple(class_names)
        self.mask_size = checks.pair("mask_size", mask_size)
        self.rules = {
            "threshold": threshold,
            "mask_threshold": mask_threshold,
            "overlap_threshold": overlap_threshold,
        }
        checks.rate(**self.rules)
        unknown = [name for name in stuff if name not in self.names]
        if unknown:
            raise ValueError(
                f"`stuff` must be names of classes. {checks.near(unknown[0], self.names)} Received: {unknown[0]!r}"
            )
        self.stuff = np.array([name in stuff for name in self.names])
        self.counts = np.zeros((4, len(self.names)))  # sums of IoU, matches, false positives, false negatives

    def add(self, examples, outputs):
        """Counts a batch, and returns the panoptic quality of each image, `(batch,)`, 0..1; 1 where nothing counts.

        Args:
            examples: `"instance_masks"`, maps of objects at their own size: PNG files, `(batch,)`, or int32
                `(batch, rows, columns, 1)`; see `keras_vit.utils.instance_maps`.
            outputs: `(batch, queries, classes + 1 + rows * columns)`, as `QueryMasks` returns them.

        Raises:
            ValueError: For a true segment of a class that is none, or outputs of other numbers of classes or pixels.
        """
        scores, stuff = [], {*np.flatnonzero(self.stuff).tolist()}
        for item, *logits in zip(examples["instance_masks"], *unpacked(outputs, len(self.names), self.mask_size)):
            truth = true_segments(item, len(self.names))
            frame = Frame(self.mask_size, self.mask_size, truth.index.shape)
            ids, segments = panoptic_map(*logits, frame, stuff, **self.rules)
            counts = counted(truth, ids, [segment["class"] for segment in segments], len(self.names))
            self.counts += counts
            quality = qualities(counts)[0]
            scores.append(np.nanmean(quality) if counts.any() else 1.0)
        return np.asarray(scores)

    def result(self):
        each = qualities(self.counts)
        measured = ~np.isnan(each[0])
        scores = {name: _mean(of_classes) for name, of_classes in zip(("pq", "sq", "rq"), each)}
        if self.stuff.any():
            groups = zip(GROUPS, (~self.stuff, self.stuff))
            scores |= {f"pq {name}": _mean(each[0, group]) for name, group in groups if (group & measured).any()}
        named = [f"{name} ({i})" if name in GROUPS else name for i, name in enumerate(self.names)]
        return scores | {f"pq {named[i]}": float(each[0, i]) for i in np.flatnonzero(measured)}

    def figures(self):
        from keras_vit import plots

        quality = qualities(self.counts)[0]
        if np.isnan(quality).all():
            return {}
        return {"Panoptic quality of each class, lowest first.": plots.plot_quality(quality, self.names)}


def counted(truth, ids, labels, classes):
    """Returns what counts in an image, float64 `(4, classes)`: the sum of IoUs, matches, false positives and negatives.

    Args:
        truth: A `Truth`.
        ids: Predicted map, integers `(rows, columns)`: numbers of segments from 0, -1 for none.
        labels: Class of each predicted segment.
        classes: Number of classes.
    """
    labels, count = np.asarray(labels, int), len(labels)
    pairs = (truth.index + 1).astype("int64") * (count + 1) + ids + 1
    pixels = np.bincount(pairs.ravel(), minlength=(len(truth.classes) + 1) * (count + 1)).reshape(-1, count + 1)
    both, void = pixels[1:, 1:], pixels[0, 1:]  # (true segments, predicted segments), (predicted segments,)
    areas, alike = pixels[:, 1:].sum(0), truth.classes[:, None] == labels
    iou = both / (pixels[1:].sum(1, keepdims=True) + areas - void - both)  # a true segment has pixels
    matches = (iou > HALF) & alike & ~truth.crowd[:, None]
    left_out = void + (both * (alike & truth.crowd[:, None])).sum(0)
    wrong = ~matches.any(0) & (left_out <= HALF * areas)
    missed = ~matches.any(1) & ~truth.crowd
    right = truth.classes[matches.any(1)]
    return np.stack(
        [
            np.bincount(right, (iou * matches).sum(1)[matches.any(1)], classes),
            np.bincount(right, minlength=classes),
            np.bincount(labels[wrong], minlength=classes),
            np.bincount(truth.classes[missed], minlength=classes),
        ]
    )


def qualities(counts):
    """Returns `pq`, `sq` and `rq` of each class, `(3, classes)`, from counts as of `counted`.

    All are NaN for a class that is nowhere; without a match they are 0.
    """
    total, right, wrong, missed = counts
    size = right + wrong / 2 + missed / 2
    pq, rq = (np.divide(part, size, out=np.full(len(size), np.nan), where=size > 0) for part in (total, right))
    sq = np.where(size > 0, total / np.maximum(right, 1), np.nan)
    return np.stack([pq, sq, rq])


def _mean(values):
    """Returns the mean of the numbers among values; 0 without any."""
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else 0.0
