"""Segmentation: a class for every pixel, objects with a mask each, or what a sentence says: rules of four kinds."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.heads import WithHead
from keras_vit.tasks.in_tiles import InTiles
from keras_vit.tasks.segment.boxed_objects import BoxedObjects
from keras_vit.tasks.segment.described import Described
from keras_vit.tasks.segment.objects import Objects
from keras_vit.tasks.segment.semantic import Semantic
from keras_vit.tasks.texts import ReadsTexts
from keras_vit.utils.checked import number, only_with

HEADS = {
    "linear": {},
    "mask": {"depth": 2, "width": None},
    "dpt": {"width": None},
    "queries": {"queries": None, "depth": None, "upscales": None, "masked": True},
    "film": {"width": 64, "num_heads": 4, "mlp_dim": 2048, "refined": False, "blocks": None},  # CLIPSeg's
    "deformable": {"queries": None, "width": None, "depth": None, "groups": None},
}
OTHER = "kind='instance' or 'panoptic'"
TEXT = "text=True"
KINDS = {"semantic": Semantic, "instance": Objects, "panoptic": Objects}


@dataclass(frozen=True, repr=False)
class Segment(InTiles, WithHead, ReadsTexts, Task):
    """Segmentation: a class for every pixel, objects with a mask each, or what a sentence says.

    With `kind="semantic"` the model returns logits, float32 `(batch, height, width, classes)`, at the size of its
    images. With `"instance"` it finds objects, with `"panoptic"` objects and regions such as sky: it returns a class
    and a mask for each of its queries, `(batch, queries, classes + 1 + rows * columns)`, see `QueryMasks`; after
    Kerssies et al. 2025 (arXiv:2503.19108, "EoMT"). With the head `"deformable"` it returns for each query a box as
    shares of the image's height and width, a score for each class alone, 0..1, and the logits of a mask, `(batch,
    queries, 4 + classes + rows * columns)`; after Robinson et al. 2025 (arXiv:2511.09554, "RF-DETR").

    With `text=True` each image has a sentence, and the model returns the logits of its pixels, float32
    `(batch, height, width, 1)`; after Lüddecke and Ecker 2022 (arXiv:2112.10003, "CLIPSeg"). A mask is 1 where the
    sentence is true, 0 elsewhere and 255 where it does not count. With `model.weights` of a CLIPSeg, or of a CLIP, and
    `optim.freeze="all"` the decoder alone is trained; without, a text tower, the image tower and the decoder are new.

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
            most of training, by default true, see `QueryLearner`. With `text=True` `"film"`, see `FiLMDecoder`: it has
            `width`, `num_heads`, `mlp_dim`, `refined`, and `blocks`, the numbers of the blocks whose tokens it takes,
            by default three: the last of each third of a new tower, and the 4th, 7th and 10th of 12 in `model.weights`.
            Of `"instance"` also `"deformable"`, RF-DETR's decoder, see `DeformableDecoder` and `InstanceMasks`: it has
            `queries`, `width`, its channels, `depth`, its number of blocks, and `groups`, the groups of queries in
            training: by default those of the weights, else 100, at most the patches, 256, 3 and 13.
        first: Of `"semantic"`, value of the first class in the masks.
        void: Of `"semantic"`, value of pixels that count in neither loss nor scores; `None` for 255 only, which is
            always void.
        class_weights: Of `"semantic"`, whether to weight the cross-entropy of a class inversely to its share of the
            pixels.
        tiles: Of `"semantic"`, whether pictures larger than the model are predicted and scored at full size, in
            overlapping tiles whose logits are blended, and not shrunk. `True`, or a dictionary: `"size"`, what
            a tile covers in pixels of the picture, `(height, width)` or its longer side, by default what the model
            takes; `"overlap"`, the share of a tile's side that it has in common with the next one, 0 to 0.5, by default
            0.25; `"step"`, pixels of whose multiples tiles begin, by default a patch. Training does not use it.
        dice: Of `"semantic"` and sentences, weight of the Dice loss, 0 to 1; see `PixelLoss` and `MaskLoss`.
        kind: `"semantic"`, `"instance"` or `"panoptic"`.
        stuff: Of `"panoptic"`, names of the classes that are regions, of which an image has one segment each; by
            default those that the data say.
        score: Of `"instance"` and `"panoptic"`, least score of a segment in pictures, answers and files. Average
            precision does not use it. By default 0.5, and 0.8.
        mask_size: Of the same, `(rows, columns)` of the model's masks; they are found in the model.
        text: Whether a sentence says which pixels are meant. The options below are for `text=True`.
        words: Vocabulary, as `tokenizer` takes it; by default learned from the training texts.
        tokens: Instead of `words`, a published tokenizer: a source of `tokenizer`.
        letters: Whether to learn a vocabulary of characters, else of lower-case words.
        vocabulary: Largest size of a learned vocabulary.
        length: Number of ids of a text. Longer texts are cut, with a warning that counts them.
        draw: Of several texts in a row, sentences with one meaning: `"one"` is drawn at a time, or `"some"`, joined.
        example: Sentence that the demo shows first.
        tower: Arguments of `text_tower`, such as `width`, `depth` and `num_heads`, for a new one; `model.weights` are
            then of the image tower alone.
        absent: Share of the training images that are asked for a sentence of another image of the batch, with an empty
            mask; not for one that any row of theirs has.
        threshold: Probability above which a pixel is found, in scores, pictures and files.
    """

    any_range = True
    asks: ClassVar[str] = "Sentence"

    parts = ("predicted", "true")
    measured = ("score", "threshold", "tiles")
    refuses = refusals.of_whole("masks")
    heads = HEADS

    head: str | dict[str, Any] = "linear"
    first: int = number(0, most=255)
    void: int | None = number(255, most=255)
    class_weights: bool = False
    tiles: bool | dict[str, Any] = only_with("whole", False)  # noqa: RUF009
    dice: float = number(0.0, most=1)
    kind: Literal["semantic", "instance", "panoptic"] = only_with("finds_objects", "semantic")
    stuff: tuple[str, ...] | None = only_with("finds_objects", None, OTHER)
    score: float | None = only_with("finds_objects", None, OTHER)
    mask_size: tuple[int, int] | None = only_with("finds_objects", None, OTHER)
    text: bool = only_with("described", False)
    words: tuple[str, ...] = only_with("described", (), TEXT)
    tokens: str = only_with("described", "", TEXT)
    letters: bool = only_with("described", False, TEXT)
    vocabulary: int = only_with("described", number(1000, low=3), TEXT)
    length: int = only_with("described", number(32, low=2), TEXT)
    draw: Literal["one", "some"] = only_with("described", "one", TEXT)
    example: str = only_with("described", "", TEXT)
    tower: dict[str, Any] | None = only_with("described", None, TEXT)  # noqa: RUF009
    absent: float = only_with("described", number(0.2, below=1), TEXT)
    threshold: float = only_with("described", number(0.5, low=0.001, most=0.999), TEXT)

    def __post_init__(self):
        if self.head == "linear" and (self.finds_objects or self.text):
            object.__setattr__(self, "head", "film" if self.text else "queries")
        super().__post_init__()
        if self.whole and (self.finds_objects or self.text):
            raise ValueError(
                "Segment.tiles joins masks of classes: kind must be 'semantic', without texts. Objects with a mask are "
                f"not joined across tiles. Received: kind={self.kind!r}, text={self.text}"
            )
        self.rules.check_options()

    @property
    def finds_objects(self):
        """Whether the task is of objects with a mask each, not of a class for every pixel."""
        return self.kind != "semantic"

    @property
    def described(self):
        """Whether a sentence says which pixels are meant."""
        return self.text

    @property
    def rules(self):
        """The rules of the kind: a `Semantic`, an `Objects`, a `BoxedObjects` or a `Described`."""
        if self.text:
            return Described(self)
        boxed = self.finds_objects and self.head_kind == "deformable"
        return (BoxedObjects if boxed else KINDS[self.kind])(self)

    @property
    def inputs(self):
        return self.rules.inputs

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

    def read(self, source, training=False):
        """Returns a split as it is, or with ids in place of texts, int32 `(images, length)` or with several texts."""
        return self.rules.read(source, training)

    def prepare(self, examples, seed):
        """Returns examples as they are; with texts, one text of each image, and some that are not of it."""
        return self.rules.prepare(examples, seed)

    def of_model(self, model):
        return replace(self, **self.rules.of_model(model), **self.tiles_of(model))

    def fits(self, model):
        """Returns whether the model's output has the task's number of classes, or one mask."""
        return self.rules.fits(model)

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, and ids of texts, to logits."""
        self.check()
        return self.rules.model(arguments)

    def learner(self, model, teacher=None):
        """Returns the model itself, a learner around it, or the part of it that sentences train."""
        return self.rules.learner(model)

    def compiled(self, source):
        return self.rules.compiled(source)

    def batch(self, examples, augment, seed):
        """Returns float32 images, 0..255, and maps `(batch, height, width, 1)`: of classes, or as in `QueryLoss`.

        With texts the images are in a dictionary with their ids.
        """
        return self.rules.batch(examples)

    def callbacks(self, run):
        return self.rules.callbacks(run)

    def finish(self, run):
        self.rules.finish(run)

    def tally(self, keep=False):
        return self.rules.tally()

    def in_tiles(self, function, size):
        """Returns the function from whole pictures to class indices, uint8 `(pictures, rows, columns)`."""
        return self.rules.in_tiles(function, size)

    def answer(self, output):
        """Returns shares of the pixels by class, objects by class with their highest score, or what a text found."""
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

    def caption(self, output, example):
        return self.rules.caption(output, example) if self.text else super().caption(output, example)

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
