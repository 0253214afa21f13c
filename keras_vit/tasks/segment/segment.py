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
    """Semantic segmentation: a class for every pixel.

    The model returns logits, float32 `(batch, height, width, classes)`, at the size of its images.

    Args:
        classes: Names of the classes, in the order of their values in the masks.
        head: `"linear"` classifies each token; `"mask"` is Segmenter's mask transformer (see `MaskDecoder`), for three
            classes or more; `"dpt"` fuses four blocks by convolutions (see `DPTHead`). With a convolutional stem whose
            feature map is finer than the patches, `"dpt"` fuses that feature map too. Either a name, or a dictionary
            with its `kind` and options, such as `{"kind": "dpt", "width": 64}`: `"mask"` has `depth`, its number of
            blocks, by default 2, and `width`, its channels, by default the encoder's width; `"dpt"` has `width`, by
            default half of the encoder's width, at most 256.
        first: Value of the first class in the masks.
        void: Value of pixels that count in neither loss nor scores; `None` for 255 only, which is always void.
        class_weights: Whether to weight the cross-entropy of a class inversely to its share of the pixels.
        dice: Weight of the Dice loss, 0 to 1; see `PixelLoss`.
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
        unnamed = not count and recipe is not None  # the data may have class names
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
            warnings.warn(message, stacklevel=2)  # a split for evaluation
        return task

    def fits(self, model):
        """Returns whether the model's output, `(batch, height, width, classes)`, has the task's number of classes."""
        return model.output_shape[-1] == len(self.classes)

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to logits of the same size."""
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
        """Returns float32 images, 0..255, and class indices or void, uint8 `(batch, height, width, 1)`."""
        return examples["images"], examples["segmentation_masks"] - self.first  # bytes below the first wrap to void

    def tally(self, keep=False):
        return pixels.PixelTally(self.classes, self.first)

    def answer(self, output):
        """Returns the share of pixels of each class, 0..1, largest first, from logits, `(height, width, classes)`."""
        predicted = np.asarray(output).argmax(-1)
        shares = np.bincount(predicted.ravel(), minlength=len(self.classes)) / predicted.size
        names = distinct(self.classes)
        return {names[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")}

    def said(self, answer):
        """Returns text such as `"sky: 60.0%, road: 40.0% of the area"` from an answer."""
        return f"{', '.join(f'{name}: {percent(share)}' for name, share in answer.items())} of the area"

    def heading(self, output):
        """Returns the areas of the three largest painted classes, or of the background, as text; `output` is logits."""
        shares = {name: share for name, share in self.answer(output).items() if share}
        painted = {name: share for name, share in shares.items() if name in self.legend()}
        return self.said(dict([*(painted or shares).items()][:3]))

    def legend(self):
        from keras_vit.plots.masks import UNPAINTED, colors

        every = zip(self.classes, distinct(self.classes), colors(len(self.classes)).tolist())
        return {text: tuple(color) for name, text, color in every if name.lower() != UNPAINTED}

    def result(self, output, size=None):
        """Returns mask values, uint8 `(rows, columns)`, of this `size`, from logits, `(height, width, classes)`."""
        return (pixels.predict(output, size) + self.first).astype("uint8")

    def picture(self, image, output, example=None):
        """Returns the image with the predicted mask, and next to it with the true mask, uint8 `(rows, columns, 3)`.

        Args:
            image: float32 `(height, width, channels)`, 0..255.
            output: Logits, `(height, width, classes)`.
            example: Dictionary with `"segmentation_masks"`, a PNG file or uint8 `(rows, columns, 1)`; or `None`.
        """
        from keras_vit.plots import masks
        from keras_vit.plots.canvas import side_by_side

        drawn = [masks.overlay(image, np.asarray(output).argmax(-1), self.classes)]
        if example is not None and "segmentation_masks" in example:
            truth = masks.overlay(image, mask_pixels(example["segmentation_masks"]), self.classes, self.first)
            drawn.append(truth)
        return side_by_side(drawn)  # prediction, truth
