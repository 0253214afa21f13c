"""The rules of instance and panoptic segmentation: objects and regions with a mask each."""

import dataclasses
import math

import numpy as np
from scipy.special import softmax

from keras_vit.models.inputs import metadata_of
from keras_vit.models.metadata import metadata
from keras_vit.models.outputs import distinct
from keras_vit.models.segment_outputs import Frame, instance_map, panoptic_map
from keras_vit.tasks import dense
from keras_vit.tasks.class_names import ordered_by
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.segment import query_head
from keras_vit.tasks.segment.instance_tally import InstanceTally
from keras_vit.tasks.segment.panoptic_tally import PanopticTally
from keras_vit.tasks.segment.query_loss import QueryLoss
from keras_vit.tasks.segment.rules import Rules
from keras_vit.tasks.segment.true_segments import true_segments
from keras_vit.utils.instance_maps import PER_CLASS

MEASURED = 500  # validation images, at most, after each epoch: masks at full size take up to a second each
SCORES = {"instance": 0.5, "panoptic": 0.8}
HEADS = {"instance": ("queries", "deformable"), "panoptic": ("queries",)}
BEST = {"instance": "val_mask_ap50", "panoptic": "val_pq"}
FIRST_OF = {"first": 0, "void": 255, "class_weights": False, "dice": 0.0}  # options of `Semantic` alone


class Objects(Rules):
    """The rules of objects with a mask each: the target `instance_masks`. Methods are as those of `Task`.

    Args:
        task: The `Segment`, whose options the rules read.
    """

    targets = ("instance_masks",)
    gives = "segments"

    def __init__(self, task):
        super().__init__(task)
        self.stuff = [task.classes.index(name) for name in task.stuff or () if name in task.classes]
        self.score = SCORES[task.kind] if task.score is None else task.score

    @property
    def best(self):
        return BEST[self.task.kind], "max"

    def check_options(self):
        task = self.task
        if task.head_kind not in HEADS[task.kind]:
            allowed = " or ".join(map(repr, HEADS[task.kind]))
            raise ValueError(f"Segment(kind={task.kind!r}) has the head {allowed}. Received: head={task.head!r}")
        wrong = [f"{name}={getattr(task, name)!r}" for name, usual in FIRST_OF.items() if getattr(task, name) != usual]
        if wrong:
            raise ValueError(f"Segment.{wrong[0].split('=')[0]} is for kind='semantic'. Received: {', '.join(wrong)}")
        if task.score is not None and not 0 <= task.score <= 1:
            raise ValueError(f"Segment.score must be from 0 to 1. Received: score={task.score}")
        if task.stuff and task.kind == "instance":
            raise ValueError(f"Segment.stuff is for kind='panoptic'. Received: stuff={task.stuff!r}")
        unknown = [name for name in task.stuff or () if task.classes and name not in task.classes]
        if unknown:
            raise ValueError(f"Segment.stuff must name classes. Received: {unknown[0]!r}, not among {task.classes!r}")

    def check(self, recipe):
        if not self.task.classes and recipe is None:
            raise ValueError("Segment.classes must name the classes of the objects. Received: classes=()")

    def on(self, source, arguments):
        task = ordered_by(self.task, source)
        if not task.classes:
            raise ValueError("Segment.classes must name the classes of the objects: the data do not. Received: none")
        if task.kind == "panoptic" and task.stuff is None:
            task = dataclasses.replace(task, stuff=source.stuff)
        if task.kind == "instance" and (source.stuff or _has_regions(source)):
            regions = ", ".join(source.stuff) or "a map with a value that 1000 divides, such as 0"
            raise ValueError(f"Regions such as sky are for Segment(kind='panoptic'). Received: {regions:.200}")
        task.check()
        return task

    def of_model(self, model):
        found = {"mask_size": model.layers[-1].mask_size}
        if self.task.kind == "panoptic" and self.task.stuff is None:
            found["stuff"] = tuple(metadata(model).get("stuff", ()))
        return found

    def fits(self, model):
        head = model.layers[-1]
        return getattr(head, "gives", None) == self.gives and head.units == len(self.task.classes)

    def model(self, arguments):
        _, model = query_head.built(self.task, arguments)
        return dense.finished(model, model.output, arguments, self.task.classes, "segmenter")

    def learner(self, model):
        about = metadata_of(model)
        about["stuff"] = list(self.task.stuff or ())
        about["evaluation"] = {**about.get("evaluation", {}), "photos": "whole"}  # how `segment` prepares photos
        return self.fitted(model)

    def fitted(self, model):
        """Returns the model that is fitted."""
        return query_head.learner(model)

    def compiled(self, source):
        return {"loss": QueryLoss(len(self.task.classes)), "weighted_metrics": []}

    def batch(self, examples):
        """Returns float32 images, 0..255, and maps of objects, int32 `(batch, height, width, 1)`; see `QueryLoss`."""
        return examples["images"], examples["instance_masks"]

    def callbacks(self, run):
        scores = ("mask_ap", "mask_ap50") if self.task.kind == "instance" else ("pq", "sq", "rq")
        query_head.set_steps(self.task, run)
        return [Measured(run, run.task.of_model(run.model).tally, scores, most=MEASURED)]

    def tally(self):
        size = self.task.mask_size or (1, 1)  # before there is a model
        if self.task.kind == "instance":
            return InstanceTally(self.task.classes, size, self.score)
        return PanopticTally(self.task.classes, size, self.task.stuff or (), threshold=self.score)

    def answer(self, output):
        """Returns counts such as `"2 cat"` with the highest score of the class, 0..1, from the output of an image."""
        found = self.segments(output)[1]
        if not found:
            return {"nothing": 1 - float(self.shares(output).max())}
        names, counts = distinct(self.task.classes), {}
        for one in found:
            counts.setdefault(one["class"], []).append(one["score"])
        rows = {f"{len(scores)} {names[i]}": max(scores) for i, scores in counts.items()}
        return dict(sorted(rows.items(), key=lambda pair: -pair[1]))

    def listed(self, output, top):
        return [*self.answer(output).items()]

    def said(self, answer):
        return ", ".join(answer)  # without scores: these are of one object

    def heading(self, output):
        return self.said(self.answer(output))

    def legend(self):
        from keras_vit.plots.masks import colors

        return dict(zip(distinct(self.task.classes), map(tuple, colors(len(self.task.classes)).tolist())))

    def result(self, output, size):
        ids, found = self.segments(output, size)
        return ids, [{**one, "category": self.task.classes[one["class"]]} for one in found]

    def shares(self, output):
        """Returns the probability of each query and class, `(queries, classes)`, from the output of an image."""
        return softmax(np.asarray(output, "float64")[:, : len(self.task.classes) + 1], -1)[:, :-1]

    def segments(self, output, size=None):
        """Returns the segments of one image at a size, by default that of the masks; see `instance_map`."""
        before = len(self.task.classes) + 1
        cells = self.cells(output.shape[1] - before)
        logits, masks = np.split(np.asarray(output, "float32"), [before], axis=1)
        masks = np.moveaxis(masks.reshape(-1, *cells), 0, -1)  # (rows, columns, queries)
        frame = Frame(cells, cells, cells if size is None else tuple(size))
        if self.task.kind == "instance":
            return instance_map(logits, masks, frame, threshold=self.score)
        return panoptic_map(logits, masks, frame, self.stuff, threshold=self.score)

    def cells(self, count):
        """Returns `(rows, columns)` of masks of so many cells; those of a square where the task does not know it."""
        return self.task.mask_size or (math.isqrt(count), math.isqrt(count))

    def picture(self, image, output, example):
        from keras_vit.plots.canvas import side_by_side
        from keras_vit.plots.segments import segmented

        drawn = [segmented(image, *self.segments(output, np.shape(image)[:2]), self.task.classes)]
        if example is not None and "instance_masks" in example:
            truth = true_segments(example["instance_masks"], len(self.task.classes))
            rows = [{"id": i, "class": c} for i, c in enumerate(truth.classes.tolist()) if not truth.crowd[i]]
            drawn.append(segmented(image, truth.index, rows, self.task.classes))
        return side_by_side(drawn)  # prediction, truth


def _has_regions(source):
    """Returns whether a map among a source's arrays has number 0, that of regions; those in files were looked at."""
    maps = source.targets["instance_masks"]
    return maps.ndim == 4 and any(((some >= 0) & (some % PER_CLASS == 0)).any() for some in maps)
