"""Object detection: a box and a class for every object."""

import os
import warnings
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np

from keras_vit.models.box_outputs import likely
from keras_vit.models.metadata import metadata
from keras_vit.models.options import flat, merged
from keras_vit.models.outputs import distinct
from keras_vit.tasks import dense, refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.class_names import ordered_by
from keras_vit.tasks.detect.box_tally import BoxTally, sides
from keras_vit.tasks.detect.group_loss import GroupLoss
from keras_vit.tasks.detect.open_loss import OpenLoss
from keras_vit.tasks.detect.point_loss import PointLoss
from keras_vit.tasks.detect.set_loss import SetLoss
from keras_vit.tasks.detect.whole_pictures import boxes_of
from keras_vit.tasks.heads import WithHead
from keras_vit.tasks.in_tiles import InTiles
from keras_vit.tasks.measured import Measured
from keras_vit.utils.checked import number, only_with

HEADS = {
    "points": {"width": None, "box_weight": 5.0},
    "tokens": {},
    "decoder": {"depth": 6},
    "deformable": {"width": None, "depth": None, "groups": None},
    "open": {"words": None, "prompts": None, "tokens": None},
}


@dataclass(frozen=True, repr=False)
class Detect(InTiles, WithHead, Task):
    """A box and a class for every object in an image.

    The model returns `(batch, most, 4 + classes)`, float32, 0..1: top, left, bottom and right as shares of the image's
    height and width, then a score for each class. The heads:

    - `"points"`: predicts one box at each position of a feature map, and keeps the boxes at peaks, highest score first.
      Zhou et al. 2019, "Objects as Points" (arXiv:1904.07850). The feature map is the output of `DPTHead` on the
      encoder's blocks, and on a convolutional stem's feature map if that is finer than the patches;
    - `"tokens"`: adds one token for each box to the patches. Fang et al. 2021, YOLOS (arXiv:2106.00666);
    - `"decoder"`: queries attend to the patches in decoder blocks. Carion et al. 2020, DETR (arXiv:2005.12872);
    - `"deformable"`: the best places of a map of several blocks propose boxes, which queries refine by attending around
      them. Robinson et al. 2025, RF-DETR (arXiv:2511.09554), see `DeformableDecoder`. It has a score for each class
      alone: a box may have two classes;
    - `"open"`: that of a published OWL-ViT or OWLv2, which finds what words name. Minderer et al. 2022 and 2023
      (arXiv:2205.06230, arXiv:2306.09683). Each patch predicts a box; the names of the classes, as words, are embedded
      once, at the start, and trained further as weights.

    All but the first return a set. In training each object is matched with one box, see `SetLoss`, `GroupLoss` and
    `OpenLoss`; from new weights this needs many more images than `"points"`.

    Args:
        classes: Names of the classes, in the order of the data.
        head: Name of a head, or a dictionary with its `kind` and options, such as `{"kind": "points", "width": 64}`.
            `"points"` has `width`, its channels, by default half of the encoder's width, at most 256, and `box_weight`,
            the weight of the box loss, by default 5, see `PointLoss`. `"decoder"` has `depth`, its number of blocks, by
            default 6. `"deformable"` has `width`, its channels, `depth`, its number of blocks, and `groups`, the groups
            of queries in training: `None` for those of the weights, else 256, 3 and 13. `"open"` has `words`, a
            dictionary from names of classes to the words that are embedded in their place; `prompts`, texts with `{}`
            for them, over whose embeddings the mean is taken, by default the words alone; and `tokens`, what
            `keras_vit.tokenizer` reads, by default the weights.
        most: Largest number of boxes in an image; with `tiles`, in a tile.
        score: Least score of a box in pictures, answers and files of boxes. Average precision does not use it.
        tiles: Whether pictures larger than the model are predicted and scored at full size, in overlapping tiles whose
            boxes are joined, and not shrunk. `True`, or a dictionary of `"size"`, `"overlap"` and `"step"`, as in
            `Segment`. Objects should fit into the overlap; larger ones are put together from their pieces.
    """

    any_range = True
    targets = ("bounding_boxes",)
    best = ("val_map50", "max")
    gives = "boxes"
    parts = ("predicted", "true")
    measured = ("score", "tiles")
    refuses = refusals.of_places("boxes")
    heads = HEADS

    head: str | dict[str, Any] = "points"
    most: int = number(100, low=1)
    score: float = number(0.3, most=1)
    tiles: bool | dict[str, Any] = only_with("whole", False)  # noqa: RUF009

    @classmethod
    def from_checkpoint(cls, source: os.PathLike | str, **arguments) -> tuple["Detect", keras.Model]:
        """Returns the task and the model of published weights of RF-DETR or YOLOS.

        Args:
            source: The directory of Hugging Face's `RfDetrForObjectDetection` or `YolosForObjectDetection`, or its
                `"hf://owner/name"`, such as `"hf://Roboflow/rf-detr-base"` or `"hf://hustvl/yolos-tiny"`; or Roboflow's
                own `.pth` file.
            **arguments: Arguments of `keras_vit.vit`, such as `image_size`: positions are resampled to it, bicubically
                as in the source's code.

        Returns:
            The task, with the class names, and the model from images, `(batch, height, width, channels)`, 0..255, to
            boxes and scores, `(batch, most, 4 + classes)`. `task.learner(model)` returns boxes and logits: of YOLOS
            `(batch, 1, most, 4 + classes + 1)`, the last logit for no object; of RF-DETR as `DeformableDecoder`.

        Raises:
            ValueError: For weights of another kind of model.
            FileNotFoundError, ConnectionError: As `keras_vit.from_checkpoint`.
        """
        from keras_vit.checkpoints.dense_heads import detector_in

        options = flat(arguments)
        fixed = sorted({"variant", "weights", "head", "tokens.registers"} & set(options))
        if fixed:
            raise ValueError(f"The weights determine {', '.join(fixed)}. Received: {fixed[0]}={options[fixed[0]]!r}")
        head, classes, most = detector_in(source)
        task = cls(classes=classes, head=head, most=most)
        model = task.model(variant=None, weights=source, head="require", **arguments)
        model.get_layer("rescale").metadata["labels"] = list(classes)
        return task, model

    def check(self, recipe=None):
        super().check(recipe)
        name = type(self).__name__
        if not self.classes and recipe is None:
            raise ValueError(f"{name}.classes must name the classes of the objects. Received: classes=()")
        if len(set(self.classes)) < len(self.classes):
            raise ValueError(f"{name}.classes must have different names. Received: classes={self.classes!r}")
        if recipe and recipe.data.resize not in (None, "pad"):
            raise ValueError(
                "Boxes are scored whole: data.resize, which crops the center, must be None, or 'pad', which crops "
                f"nothing. Received: data.resize={recipe.data.resize!r}"
            )
        if self.head_kind == "open":
            from keras_vit.tasks.detect import open_model

            open_model.check(self, recipe.model if recipe else None)
        if recipe and self.head_kind == "tokens" and (recipe.optim.freeze is not None or recipe.optim.lora):
            warnings.warn(
                "optim.freeze and optim.lora freeze the tokens of the boxes too: they are new unless model.weights "
                "are those of a YOLOS.",
                stacklevel=2,
            )

    def on(self, source, arguments=None):
        task = ordered_by(self, source)
        task.check()
        most = (source.targets["bounding_boxes"][..., 4] >= 0).sum(1).max(initial=0)
        if arguments is not None and most > self.most:
            raise ValueError(
                f"{type(self).__name__}.most must be the objects of an image or more. Received: most={self.most}, and "
                f"an image of {most} objects"
            )
        return task

    def of_model(self, model):
        """Returns the task with what a model says: its least score, and whether a box may have several classes."""
        score, several = metadata(model).get("score"), getattr(model.layers[-1], "end", None) == "sigmoid"
        task = replace(self, **({} if score is None else {"score": score}), **self.tiles_of(model))
        return replace(task, head="deformable") if several and task.head_kind != "deformable" else task

    def fits(self, model):
        """Returns whether the model's output is `(batch, most, 4 + classes)`."""
        return model.output_shape[1:] == (self.most, 4 + len(self.classes))

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to `(batch, most, 4 + classes)`."""
        from keras_vit.tasks.detect import box_heads

        self.check()
        if self.head_kind == "open":
            from keras_vit.tasks.detect import open_model

            return open_model.built(self, arguments)
        if self.head_kind == "tokens":
            registers = flat(arguments).get("tokens.registers")
            if registers:
                raise ValueError(f"The registers are the task's boxes. Received: registers={registers!r}")
            arguments = merged(arguments, {"tokens": {"registers": self.most}})
        encoder = dense.encoder(arguments, len(self.classes), "detector", self.vit)
        output = box_heads.BUILD[self.head_kind](self, encoder, arguments)
        return dense.finished(encoder, output, arguments, self.classes, "detector")

    def learner(self, model, teacher=None):
        """Returns the model without its last layer: its output is the `y_pred` of `PointLoss` or another loss here."""
        from keras_vit.layers.functional import Model

        found = model.get_layer("boxes").input
        if isinstance(found, list):  # boxes, and logits
            found = keras.layers.Concatenate(name="found", dtype="float32")(found)
        return Model(model.input, found, name=model.name)

    def compiled(self, source):
        losses = {
            "points": lambda: PointLoss(self.head_options["box_weight"]),
            "deformable": lambda: GroupLoss(self.most),
            "open": OpenLoss,
        }
        return {"loss": losses.get(self.head_kind, SetLoss)(), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns float32 images, 0..255, and boxes, float32 `(batch, most, 5)`, as in `PointLoss`."""
        return examples["images"], examples["bounding_boxes"]

    def callbacks(self, run):
        return [Measured(run, self.tally, ("map", "map50"))]

    def tally(self, keep=False):
        return BoxTally(self.classes, self.score, self.head_kind == "deformable", every=self.whole)

    def in_tiles(self, function, size):
        """Returns the function from whole pictures to boxes, a list of float64 `(boxes, 4 + classes)`, best first."""
        return boxes_of(function, size, self.tiling, self.head_kind == "deformable")

    def answer(self, output):
        """Returns counts such as `"2 cat"` with the highest score of the class, 0..1, from `(most, 4 + classes)`."""
        _, classes, scores = self._likely(output)
        if not len(scores):
            return {"nothing": 1 - float(np.asarray(output)[:, 4:].max(initial=0))}
        names = distinct(self.classes)
        scores_of_classes = {
            f"{(classes == i).sum()} {names[i]}": float(scores[classes == i].max()) for i in set(classes)
        }
        return dict(sorted(scores_of_classes.items(), key=lambda pair: -pair[1]))

    def listed(self, output, top):
        """Returns the pairs of all classes with objects, from `(most, 4 + classes)`."""
        return [*self.answer(output).items()]

    def said(self, answer):
        """Returns text such as `"2 cat, 1 dog"` from an answer."""
        return ", ".join(answer)  # without scores: these are of one box, and in pictures and files

    def legend(self):
        from keras_vit.plots.masks import colors

        return dict(zip(distinct(self.classes), map(tuple, colors(len(self.classes)).tolist())))

    def result(self, output, size=None):
        """Returns the objects of an image, the most likely first.

        Args:
            output: The model's output for the image, `(most, 4 + classes)`.
            size: `(rows, columns)` of the image before it was resized for the model.

        Returns:
            List with a dictionary for each object, as in COCO's results, but with class names: `"category"`, the class
            name; `"bbox"`, x, y, width and height in pixels of the image; `"score"`, 0..1.
        """
        edges, classes, scores = self._likely(output)
        rows = zip(classes, sides(edges * np.tile(size, 2)).round(2).tolist(), scores)
        return [{"category": self.classes[c], "bbox": box, "score": round(float(s), 4)} for c, box, s in rows]

    def picture(self, image, output, example=None):
        """Returns the image with predicted boxes, and next to it with true boxes, uint8 `(rows, columns, 3)`.

        Args:
            image: float32 `(height, width, channels)`, 0..255.
            output: The model's output for the image, `(most, 4 + classes)`.
            example: Dictionary with `"bounding_boxes"`, float32 `(most, 5)`, or `None`.
        """
        from keras_vit.plots.boxes import boxed
        from keras_vit.plots.canvas import side_by_side

        size = np.tile(np.shape(image)[:2], 2)
        edges, classes, scores = self._likely(output)
        drawn = [boxed(image, edges * size, classes, self.classes, scores)]
        if example is not None and "bounding_boxes" in example:
            truth = example["bounding_boxes"][example["bounding_boxes"][:, 4] >= 0]
            truth = boxed(image, truth[:, :4] * size, truth[:, 4].astype(int), self.classes)
            drawn.append(truth)
        return side_by_side(drawn)  # prediction, truth

    def _likely(self, output):
        """Returns edges, `(n, 4)`, 0..1, classes and scores, both `(n,)`, of boxes with at least the score `score`."""
        return likely(output, max(self.score, 1e-6), several=self.head_kind == "deformable")
