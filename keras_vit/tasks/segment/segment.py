"""Segmentation: a class for every pixel, or objects with a mask each. `Semantic` and `Objects` hold the rules."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.heads import WithHead
from keras_vit.tasks.segment.objects import Objects
from keras_vit.tasks.segment.semantic import Semantic
from keras_vit.utils.checked import number, only_with

HEADS = {
    "linear": {},
    "mask": {"depth": 2, "width": None},
    "dpt": {"width": None},
    "queries": {"queries": None, "depth": None, "upscales": None, "masked": True},
}
OTHER = "kind='instance' or 'panoptic'"
KINDS = {"semantic": Semantic, "instance": Objects, "panoptic": Objects}


@dataclass(frozen=True, repr=False)
class Segment(WithHead, Task):
    """Segmentation: a class for every pixel, or objects with a mask each.

    With `kind="semantic"` the model returns logits, float32 `(batch, height, width, classes)`, at the size of its
    images. With `"instance"` it finds objects, with `"panoptic"` objects and regions such as sky: it returns a class
    and a mask for each of its queries, `(batch, queries, classes + 1 + rows * columns)`, see `QueryMasks`; after
    Kerssies et al. 2025 (arXiv:2503.19108, "EoMT").

    Args:
        classes: Names of the classes, in the order of their values in the masks.
        head: Of `"semantic"`: `"linear"` classifies each token; `"mask"` is Segmenter's mask transformer (see
            `MaskDecoder`), for three classes or more; `"dpt"` fuses four blocks by convolutions (see `DPTHead`). With a
            convolutional stem whose feature map is finer than the patches, `"dpt"` fuses that feature map too;
            `"queries"`, the head of the other kinds, adds learned queries in front of the tokens of the last blocks:
            each has a class and a mask. Either a name, or a dictionary with its `kind` and options, such as `{"kind":
            "dpt", "width": 64}`: `"mask"` has `depth`, its number of blocks, by default 2, and `width`, its channels,
            by default the encoder's width; `"dpt"` has `width`, by default half of the encoder's width, at most 256;
            `"queries"` has `queries`, the largest number of objects in an image, `depth`, the number of blocks that see
            them, and `upscales`, how often the patches are doubled for the masks: by default those of the weights, else
            100, 4 or a third of all blocks, and 2; and `masked`, whether queries attend inside their own masks during
            most of training, by default true, see `QueryLearner`.
        first: Of `"semantic"`, value of the first class in the masks.
        void: Of `"semantic"`, value of pixels that count in neither loss nor scores; `None` for 255 only, which is
            always void.
        class_weights: Of `"semantic"`, whether to weight the cross-entropy of a class inversely to its share of the
            pixels.
        dice: Of `"semantic"`, weight of the Dice loss, 0 to 1; see `PixelLoss`.
        kind: `"semantic"`, `"instance"` or `"panoptic"`.
        stuff: Of `"panoptic"`, names of the classes that are regions, of which an image has one segment each; by
            default those that the data say.
        score: Of `"instance"` and `"panoptic"`, least score of a segment in pictures, answers and files. Average
            precision does not use it. By default 0.5, and 0.8.
        mask_size: Of the same, `(rows, columns)` of the model's masks; they are found in the model.
    """

    parts = ("predicted", "true")
    measured = ("score",)
    refuses = refusals.of_whole("masks")
    heads = HEADS

    head: str | dict[str, Any] = "linear"
    first: int = number(0, most=255)
    void: int | None = number(255, most=255)
    class_weights: bool = False
    dice: float = number(0.0, most=1)
    kind: Literal["semantic", "instance", "panoptic"] = only_with("finds_objects", "semantic")
    stuff: tuple[str, ...] | None = only_with("finds_objects", None, OTHER)
    score: float | None = only_with("finds_objects", None, OTHER)
    mask_size: tuple[int, int] | None = only_with("finds_objects", None, OTHER)

    def __post_init__(self):
        if self.finds_objects and self.head == "linear":
            object.__setattr__(self, "head", "queries")
        super().__post_init__()
        self.rules.check_options()

    @property
    def finds_objects(self):
        """Whether the task is of objects with a mask each, not of a class for every pixel."""
        return self.kind != "semantic"

    @property
    def rules(self):
        """The rules of the kind, a `Semantic` or an `Objects`."""
        return KINDS[self.kind](self)

    @property
    def targets(self):
        return self.rules.targets

    @property
    def best(self):
        return self.rules.best

    @property
    def gives(self):
        return self.rules.gives

    def check(self, recipe=None):
        super().check(recipe)
        if len(set(self.classes)) < len(self.classes):
            raise ValueError(f"Segment.classes must have different names. Received: classes={self.classes!r}")
        self.rules.check(recipe)

    def on(self, source, arguments=None):
        return self.rules.on(source, arguments)

    def of_model(self, model):
        return replace(self, **self.rules.of_model(model))

    def fits(self, model):
        """Returns whether the model's output has the task's number of classes."""
        return self.rules.fits(model)

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to logits."""
        self.check()
        return self.rules.model(arguments)

    def learner(self, model, teacher=None):
        """Returns the model itself, or a `QueryLearner` around it."""
        return self.rules.learner(model)

    def compiled(self, source):
        return self.rules.compiled(source)

    def batch(self, examples, augment, seed):
        """Returns float32 images, 0..255, and maps `(batch, height, width, 1)`: of classes, or as in `QueryLoss`."""
        return self.rules.batch(examples)

    def callbacks(self, run):
        return self.rules.callbacks(run)

    def finish(self, run):
        self.rules.finish(run)

    def tally(self, keep=False):
        return self.rules.tally()

    def answer(self, output):
        """Returns the share of pixels of each class, 0..1, or the objects of each class with the highest score."""
        return self.rules.answer(output)

    def listed(self, output, top):
        """Returns the first `top` classes by their share of the pixels, or the pairs of all classes with objects."""
        return self.rules.listed(output, top)

    def said(self, answer):
        """Returns text such as `"sky: 60.0%, road: 40.0% of the area"`, or `"2 cat, 1 dog"`, from an answer."""
        return self.rules.said(answer)

    def heading(self, output):
        """Returns the three largest painted classes, or what objects there are, as text; `output` is of one image."""
        return self.rules.heading(output)

    def legend(self):
        return self.rules.legend()

    def result(self, output, size=None):
        """Returns mask values, uint8 `(rows, columns)`, of this `size`; or segment numbers, and the segments.

        The numbers are int32 `(rows, columns)`, -1 for none; the segments a list of dictionaries: `"id"`, the number,
        `"class"`, the class's index, `"category"`, its name, and `"score"`.
        """
        return self.rules.result(output, size)

    def picture(self, image, output, example=None):
        """Returns the image with predicted masks, and next to it with the true ones, uint8 `(rows, columns, 3)`.

        Args:
            image: float32 `(height, width, channels)`, 0..255.
            output: The model's output for the image.
            example: Dictionary with the target, as in `evaluation_arrays`; or `None`.
        """
        return self.rules.picture(image, output, example)
