"""Semantic segmentation: a class for every pixel."""

import warnings
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from keras_vit.models.outputs import distinct
from keras_vit.tasks import dense, refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.class_names import ordered_by
from keras_vit.tasks.classify.balance import class_weights
from keras_vit.tasks.heads import WithHead
from keras_vit.tasks.segment import pixels
from keras_vit.tasks.shown import percent
from keras_vit.utils.checked import number
from keras_vit.utils.images import mask_pixels

HEADS = {"linear": {}, "mask": {"depth": 2, "width": None}, "dpt": {"width": None}}
MOST = 254  # classes: masks are bytes, and 255 is void


@dataclass(frozen=True, repr=False)
class Segment(WithHead, Task):
    """A class for every pixel: the head, and what the values of the masks mean.

    Args:
        classes: Names of the classes, in the order of their values in the masks.
        head: `"linear"` classifies each token; `"mask"` is Segmenter's mask transformer (see `MaskDecoder`), for three
            classes or more; `"dpt"` fuses four blocks by convolutions (see `DPTHead`). After a convolutional stem whose
            feature map is finer than the patches, `"dpt"` fuses that map too. Logits are enlarged to the image. A word,
            or a dictionary with its `kind` and options, such as `{"kind": "dpt", "width": 64}`: `"mask"` has `depth`,
            its blocks, by default 2, and `width`, its channels, by default the encoder's; `"dpt"` has `width`, by
            default half of the encoder's, at most 256.
        first: Value of the first class.
        void: Value of the pixels that are left out of loss and scores, if any. 255 always is.
        class_weights: Whether to weight the cross-entropy of a class inversely to its share of the pixels.
        dice: Share of the Dice loss; see `PixelLoss`.
    """

    targets = ("segmentation_masks",)
    best = ("val_mean_iou", "max")
    gives = "masks"
    parts = ("predicted", "true")
    refuses = refusals.of_whole("masks")
    heads = HEADS

    head: str | dict[str, Any] = "linear"
    first: int = number(0, most=255)
    void: int | None = number(255, most=255)
    class_weights: bool = False
    dice: float = number(0.0, most=1)

    def check(self, recipe=None):
        super().check(recipe)
        count = len(self.classes)
        unnamed = not count and recipe is not None  # the data may name them
        if not 2 <= count <= MOST and not unnamed:
            raise ValueError(f"Segment.classes must name 2 to {MOST} classes. Received: classes={self.classes!r}")
        if len(set(self.classes)) < count:
            raise ValueError(f"Segment.classes must have different names. Received: classes={self.classes!r}")
        if self.first + count > pixels.VOID:
            raise ValueError(f"Classes must have values up to 254. Received: {count} classes from first={self.first}")
        if self.void is not None and self.first <= self.void < self.first + count:
            raise ValueError(f"Segment.void must not be the value of a class. Received: void={self.void}")
        if self.head_kind == "mask" and count < 3 and not unnamed:
            raise ValueError("Segment.head='mask' needs 3 classes or more: its norm compares them. Received: 2 classes")

    def on(self, source, arguments=None):
        task = ordered_by(self, source)
        task.check()
        values = {*range(task.first, task.first + len(task.classes)), task.void, pixels.VOID}
        wrong = {value: name for value, name in source.mask_values.items() if value not in values}
        if wrong:
            value, name = min(wrong.items())
            raise ValueError(
                f"Masks must have values {task.first} to {task.first + len(task.classes) - 1}, one per class"
                f"{'' if task.void is None else f', or {task.void} for void'}. Received: {sorted(wrong)}, such as "
                f"{value} in {name!r}"
            )
        present = [name for i, name in enumerate(task.classes, task.first) if i in source.mask_values]
        if len(present) < 2 and pixels.VOID in source.mask_values:
            message = (
                f"Masks must have pixels of two classes or more, values {task.first} to "
                f"{task.first + len(task.classes) - 1}; 255 is void. Received: only {present}, and 255"
            )
            if arguments is not None:
                raise ValueError(message)
            warnings.warn(message, stacklevel=2)  # of a split to measure on
        return task

    def fits(self, model):
        return model.output_shape[-1] == len(self.classes)

    def model(self, **arguments):
        self.check()
        encoder = dense.encoder(arguments, len(self.classes), "segmenter")
        head = {"linear": self._linear, "mask": self._mask, "dpt": self._dpt}[self.head_kind]
        logits = head(encoder, **self.head_options)
        size = encoder.input_shape[1:3]
        enlarge = keras.layers.Resizing(*size, data_format="channels_last", name="logits", dtype="float32")
        return dense.finished(encoder, enlarge(logits), arguments, self.classes, "segmenter")

    def _linear(self, encoder):
        head = keras.layers.Dense(len(self.classes), kernel_initializer="zeros", name="head", dtype="float32")
        return dense.feature_map(encoder, head(dense.patches(encoder, encoder.output)), "map")

    def _mask(self, encoder, depth, width):
        from keras_vit.layers import MaskDecoder

        block = encoder.get_layer("block_0")
        head = MaskDecoder(
            len(self.classes),
            block.num_heads,
            block.mlp_dim,
            depth=depth,
            width=width,
            gelu=block.gelu,
            epsilon=block.epsilon,
            dropout=block.dropout,
            name="head",
            dtype=encoder.dtype_policy,
        )
        return dense.feature_map(encoder, head(dense.patches(encoder, encoder.output)), "map")

    def _dpt(self, encoder, width):
        return dense.dpt(encoder, len(self.classes), width)

    def compiled(self, source):
        weights = None
        if self.class_weights:
            weights = class_weights(source.mask_counts.sum(0)[self.first : self.first + len(self.classes)])
        scores = [pixels.MeanIoU(len(self.classes)), pixels.PixelAccuracy()]
        return {"loss": pixels.PixelLoss(weights, self.dice), "weighted_metrics": scores}

    def batch(self, examples, augment, seed):
        return examples["images"], examples["segmentation_masks"] - self.first  # bytes below the first wrap to void

    def tally(self, keep=False):
        return pixels.PixelTally(self.classes, self.first)

    def answer(self, output):
        predicted = np.asarray(output).argmax(-1)
        shares = np.bincount(predicted.ravel(), minlength=len(self.classes)) / predicted.size
        names = distinct(self.classes)
        return {names[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")}

    def said(self, answer):
        return f"{', '.join(f'{name}: {percent(share)}' for name, share in answer.items())} of the area"

    def heading(self, output):
        """Returns the areas of the classes that are painted, three at most; that of the background if there is none."""
        shares = {name: share for name, share in self.answer(output).items() if share}
        painted = {name: share for name, share in shares.items() if name in self.legend()}
        return self.said(dict([*(painted or shares).items()][:3]))

    def legend(self):
        from keras_vit.plots.masks import UNPAINTED, colors

        every = zip(self.classes, distinct(self.classes), colors(len(self.classes)).tolist())
        return {text: tuple(color) for name, text, color in every if name.lower() != UNPAINTED}

    def result(self, output, size=None):
        return (pixels.predict(output, size) + self.first).astype("uint8")

    def picture(self, image, output, example=None):
        from keras_vit.plots import masks
        from keras_vit.plots.canvas import side_by_side

        drawn = [masks.overlay(image, np.asarray(output).argmax(-1), self.classes)]
        if example is not None and "segmentation_masks" in example:
            truth = masks.overlay(image, mask_pixels(example["segmentation_masks"]), self.classes, self.first)
            drawn.append(truth)
        return side_by_side(drawn)  # the prediction, then the truth
